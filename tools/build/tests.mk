# SPDX-License-Identifier: MIT
# The tests, one Criterion program per folder; fault is slow and has targets of its own.

FOLDERS := unit lua api sync $(if $(WITH_CRON),cron) cli
FOLDERS_IN_C := $(filter-out lua,$(FOLDERS)) # those of lua run in Redis
TESTS   := $(FOLDERS:%=$(BUILD)/tests/%)
KIT_O   := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/kit/*.c))
PRELOAD := $(patsubst tests/kit/preload/%.c,$(BUILD)/preload/%.so,$(wildcard tests/kit/preload/*.c))

# the C twins of functions of the scripts, which the library hides
TWINS_lua := $(patsubst %,$(OBJ)/src/%.o,job/owner job/keys job/series job/group job/attributes job/record base/span)
ALSO_sync := $(BUILD)/liblapse-sync.a
ALSO_cron := $(BUILD)/liblapse-cron.a
LIBS_cron := $(CRON_LIBS)

# takes the place of what Criterion needs by that name, and is found where it was built
STAND_IN := $(BUILD)/stand_in/libgit2.so
CRITERION = -Wl,--push-state,--no-as-needed $(STAND_IN) -Wl,--pop-state,-rpath,$(abspath $(BUILD)/stand_in) -lcriterion
$(STAND_IN): tests/kit/stand_in/libgit2.c
	@mkdir -p $(@D)
	$(call say,LD)name=$$(objdump -p "$$($(CC) -print-file-name=libcriterion.so)" | sed -n 's/.*NEEDED *\(libgit2\..*\)/\1/p'); \
	    $(CC) -std=gnu11 $(WARN) -O2 -g -fPIC -shared -Wl,-soname,$${name:-libgit2.so} -o $@ $< && \
	    { [ -z "$$name" ] || ln -sf libgit2.so $(@D)/$$name; }

folder_o = $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/$(1)/*.c))
linked_into = $(call folder_o,$(1)) $(KIT_O) $(if $(filter unit,$(1)),$(LIB_O),$(TWINS_$(1)) $(ALSO_$(1)) $(BUILD)/liblapse.a)
define criterion
$(BUILD)/tests/$(1): $(call linked_into,$(1)) | $(STAND_IN)
	@mkdir -p $$(@D)
	$$(call say,LD)$$(LINK) -o $$@ $$^ $$(CRITERION) $$(LIBS_$(1)) $$(LIBS)
$(BUILD)/forking/$(1): $(OBJ)/tests/kit/stand_in/runner.o $(call linked_into,$(1)) | $(STAND_IN)
	@mkdir -p $$(@D)
	$$(call say,LD)$$(LINK) -o $$@ $$^ $$(CRITERION) $$(LIBS_$(1)) $$(LIBS)
endef
$(foreach f,$(FOLDERS) fault,$(eval $(call criterion,$(f))))

$(KIT_O): | $(BUILD)/users.acl

# checks the histories that the fault runs write; contains nothing of lapse
$(BUILD)/history-check: $(call folder_o,history)
	$(call say,LD)$(LINK) -o $@ $^ -ljansson

# the fault runs on scripts that lack a guard, which the checker must notice; tests/meta/broken/NAME.sed removes it
BROKEN := $(patsubst tests/meta/broken/%.sed,$(BUILD)/broken/%/fault,$(wildcard tests/meta/broken/*.sed))
$(BUILD)/broken/%/script_texts.h: tests/meta/broken/%.sed tests/meta/broken/break.sh $(LUA) $(LUA_TOOLS)
	@tests/meta/broken/break.sh $* $(@D)/src
	$(call say,LUA)tools/build/scripts.py build $(@D)/src $(@D)
$(BUILD)/broken/%/facts.o: src/script/facts.c $(BUILD)/broken/%/script_texts.h
	$(call say,CC)$(CC) $(BASE) -I$(@D) $(FLAGS_src) -c -o $@ $<
$(BUILD)/broken/%/fault: $(BUILD)/broken/%/facts.o $(KIT_O) $(LIB_O) \
    $(patsubst %,$(OBJ)/tests/fault/%.o,baseline events failover fault listeners producer workload) | $(STAND_IN)
	$(call say,LD)$(LD) -r -o $(@D)/liblapse.o $< $(filter-out %/script/facts.o,$(LIB_O))
	@objcopy --localize-hidden $(@D)/liblapse.o
	@$(LINK) -o $@ $(filter $(OBJ)/tests/%,$^) $(@D)/liblapse.o $(CRITERION) $(LIBS)

# libraries for LD_PRELOAD, which replace functions of the C library in a program under test
$(BUILD)/preload/%.so: tests/kit/preload/%.c $(wildcard tests/kit/preload/*.h)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -fPIC -shared -o $@ $<

# one program per file; `make check` replays its corpus, `make fuzz` extends it
FUZZ := $(filter-out replay $(if $(WITH_CRON),,cron),$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
REPLAYS := $(FUZZ:%=$(BUILD)/tests/fuzz-%)
FUZZ_S := 60
# --help exits the program; the target must go on with the next input
$(BUILD)/args $(BUILD)/tests/fuzz-args: FUZZ_LINK := -Wl,--wrap=close_stdout
# an archive, so that a target may define some of these functions itself
$(BUILD)/parts.a: $(LIB_O) $(if $(WITH_CRON),$(CRON_O)) $(filter-out %/main.o,$(TOOL_O))
	$(call say,AR)rm -f $@ && $(AR) qcs $@ $^
$(REPLAYS): $(BUILD)/tests/fuzz-%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/replay.o $(BUILD)/parts.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) $(FUZZ_LINK) -o $@ $^ $(CRON_LIBS) $(LIBS)
$(FUZZ:%=$(BUILD)/%): $(BUILD)/%: $(OBJ)/tests/fuzz/%.o $(BUILD)/parts.a
	$(call say,LD)$(LINK) $(FUZZ_LINK) -fsanitize=fuzzer -o $@ $^ $(CRON_LIBS) $(LIBS)

# threads: one program per file, each clean under race detectors; run.sh starts a Redis for it
THREADS := $(patsubst tests/threads/%.c,$(BUILD)/threads/%,$(wildcard tests/threads/*.c))
$(THREADS): $(BUILD)/threads/%: $(OBJ)/tests/threads/%.o $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -pthread -o $@ $^ $(LIBS)

# each header as C11 against the static libraries, as C++17 against the shared ones
HEADERS := $(addprefix $(BUILD)/tests/header-,c11 cxx17 sync-c11 sync-cxx17 $(if $(WITH_CRON),cron-c11 cron-cxx17))
STRICT  := -Wall -Wextra -Wpedantic -Werror -O2 -g -Iinclude
$(BUILD)/tests/header-c11: tests/meta/header/use.c include/lapse.h $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,CC)$(LINK) -std=c11 -fPIE $(STRICT) -o $@ $< $(BUILD)/liblapse.a $(LIBS)
$(BUILD)/tests/header-sync-c11: tests/meta/header/use_sync.c include/lapse_sync.h include/lapse.h \
    $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,CC)$(LINK) -std=c11 -fPIE -pthread $(STRICT) -o $@ $< $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a $(LIBS)
$(BUILD)/tests/header-sync-cxx17: tests/meta/header/use_sync.c include/lapse_sync.h include/lapse.h \
    $(BUILD)/liblapse-sync.so $(BUILD)/liblapse.so
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(SANFLAGS) $(CXXFLAGS) $(LDFLAGS) -x c++ -std=c++17 $(STRICT) -o $@ $< \
	    -x none -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -llapse-sync -llapse
$(BUILD)/tests/header-cron-c11: tests/meta/header/use_cron.c include/lapse_cron.h include/lapse_sync.h include/lapse.h \
    $(BUILD)/liblapse-cron.a $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,CC)$(LINK) -std=c11 -fPIE -pthread $(STRICT) -o $@ $< $(filter %.a,$^) $(CRON_LIBS) $(LIBS)
$(BUILD)/tests/header-cron-cxx17: tests/meta/header/use_cron.c include/lapse_cron.h include/lapse_sync.h include/lapse.h \
    $(BUILD)/liblapse-cron.so
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(SANFLAGS) $(CXXFLAGS) $(LDFLAGS) -x c++ -std=c++17 $(STRICT) -o $@ $< \
	    -x none -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -llapse-cron
$(BUILD)/tests/header-cxx17: tests/meta/header/use.c include/lapse.h $(BUILD)/liblapse.so
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(SANFLAGS) $(CXXFLAGS) $(LDFLAGS) -x c++ -std=c++17 $(STRICT) -o $@ $< \
	    -x none -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -llapse -lev

objects: $(LIB_O) $(SYNC_O) $(if $(WITH_CRON),$(CRON_O)) $(TOOL_O) $(EXAMPLES:%=$(OBJ)/tools/examples/%.o) $(KIT_O) $(OBJ)/tests/kit/stand_in/runner.o $(OBJ)/tools/build/tables.o \
    $(foreach f,$(FOLDERS) threads fault fuzz history bench,$(call folder_o,$(f))) $(PRELOAD) $(STAND_IN)

# what the example for Node and the consumers of the fault runs need; where it is missing, as with `make check` alone,
# their tests are skipped
NODE := $(BUILD)/node/node_modules/ioredis/package.json
node: $(NODE)
$(NODE): tools/examples/package.json
	@mkdir -p $(BUILD)/node && cp $< $(BUILD)/node
	$(call say,NPM)npm --prefix $(BUILD)/node install --no-audit --no-fund --ignore-scripts --loglevel=error >&2
	@touch $@

check: all $(HEADERS) $(TESTS) $(REPLAYS) $(BUILD)/history-check $(PRELOAD)  ## build and run the tests, install nothing; ONLY='cancel/*' picks some
	@tests/run.sh $(BUILD) $(notdir $(HEADERS)) $(notdir $(REPLAYS)) $(FOLDERS)

# valgrind finds uninitialized values, which ASan does not: the tests that read foreign bytes, and each verb once
VALGRIND_API := @(bad_input|corrupt_data|foreign|get|list|settle|reclaim)/*
VALGRIND_CLI := @(list|schedule|text|cancel|depth|reschedule)/*

steady: all $(TESTS) $(BUILD)/history-check $(PRELOAD)  ## run the test programs N=20 times, every other time on a busy machine, and count the failures
	@tests/steady.sh $(BUILD) $(FOLDERS)
test-asan:  ## run the tests under AddressSanitizer and UBSan; any report fails
	@$(DEPS) build run test
	$(again) BUILD=$(BUILD)/asan SAN=address,undefined FOLDERS='$(FOLDERS_IN_C)' check
test-msan:  ## replay the corpora of the fuzzers under clang's MemorySanitizer
	@$(DEPS) build lint
	$(again) BUILD=$(BUILD)/msan CC=clang SAN=memory check-msan
# MemorySanitizer does not see what GLib writes
MSAN_REPLAYS := $(filter-out %-cron,$(REPLAYS))
check-msan: $(MSAN_REPLAYS)
	@tests/run.sh $(BUILD) $(notdir $(MSAN_REPLAYS))
test-valgrind:  ## run the unit tests, and some of api and cli, under valgrind; any report fails
	@$(DEPS) build run test valgrind
	$(again) all $(addprefix $(BUILD)/forking/,unit api cli)
	@VALGRIND=1 tests/run.sh $(BUILD) unit 'api=$(VALGRIND_API)' 'cli=$(VALGRIND_CLI)'
model:  ## check the models of the protocol with spin, whole and without each guard; QUICK=1 takes half a minute
	@$(DEPS) build model
	@mkdir -p $(BUILD) && tests/model/run.sh $(BUILD)
test-tsan:  ## run the programs with threads under ThreadSanitizer; any report fails
	@$(DEPS) build run
	$(again) BUILD=$(BUILD)/tsan SAN=thread run-threads
test-helgrind:  ## run the programs with threads under valgrind's helgrind; any report fails
	@$(DEPS) build run valgrind
	$(again) WITH=helgrind run-threads
run-threads: $(THREADS)
	@tests/threads/run.sh $(BUILD) $(or $(WITH),plain) $(notdir $(THREADS))
coverage:  ## show how much of src/ the tests run, a line per file; fails below 97 % of lines or 93 % of branches
	@$(DEPS) build run test coverage
	$(again) BUILD=$(BUILD)/cov CFLAGS='$(CFLAGS) --coverage -O0' CXXFLAGS='$(CXXFLAGS) --coverage' \
	    LDFLAGS='$(LDFLAGS) -Wl,--wrap=_exit,--wrap=abort $(BUILD)/cov/flush.o' check-coverage
check-coverage:
	@mkdir -p $(BUILD); find $(BUILD) -name '*.gcda' -delete
	@$(CC) $(BASE) -c -o $(BUILD)/flush.o tests/meta/coverage/flush.c
	$(again) FOLDERS='$(FOLDERS_IN_C)' check
	@tests/meta/coverage/report.sh $(BUILD)
test-trixie:  ## run the tests on Debian 13 (hiredis 1.2, Redis 8, Valkey 8.1; flows by TLS, too), in a chroot that it keeps; needs root and debootstrap
	@tools/build/trixie.sh
fuzz:  ## run libFuzzer on each parser of outside input, for FUZZ_S=60 seconds each; ONLY='url job' picks some
	@$(DEPS) build lint
	$(again) BUILD=$(BUILD)/libfuzzer CC=clang SAN=fuzzer-no-link,address,undefined run-fuzz
run-fuzz: $(FUZZ:%=$(BUILD)/%)
	@tests/fuzz/run.sh $(BUILD) $(FUZZ_S) $(or $(ONLY),$(FUZZ))
test-acl:  ## run the api tests as the users of tools/doc/users.md, who have only the rights that they need; USERS=producer picks one
	@$(DEPS) build run test
	$(again) all $(BUILD)/tests/api
	@for user in $(or $(USERS),listener producer); do LAPSE_TEST_ACL=$$user tests/run.sh $(BUILD) api || exit 1; done
# those that do not start their own cluster, Sentinels or replicas
OWN   := cluster clustered cluster_map sentinel replicas sealed tls
none  :=
suites_but = api=!($(subst $(none) ,|,$(strip $(1))))/*
# a cluster takes 2 s to start, and next to no time of the processor
test-servers:  ## run the flows of the api tests in Redis Clusters, and behind a Sentinel
	@$(DEPS) build run test
	$(again) all $(BUILD)/tests/api
	@e=0; LAPSE_TEST_ON=cluster JOBS=$(or $(JOBS),32) tests/run.sh $(BUILD) '$(call suites_but,$(OWN))' || e=1; \
	LAPSE_TEST_ON=masters JOBS=$(or $(JOBS),16) tests/run.sh $(BUILD) '$(call suites_but,$(OWN))' || e=1; \
	LAPSE_TEST_ON=sentinel tests/run.sh $(BUILD) '$(call suites_but,$(OWN))' || e=1; exit $$e
check-tls: all $(BUILD)/tests/api  # where lapse is built with TLS, as on Debian 13; else all are skipped
	@LAPSE_TEST_ON=tls tests/run.sh $(BUILD) '$(call suites_but,$(OWN))'
mutate:  ## make each condition of the scripts always true, then always false: do the tests notice? ONLY='claim.lua' picks some
	@$(DEPS) build run test lint
	$(again) all $(BUILD)/tests/lua
	@tests/meta/mutate/run.sh $(BUILD)
test-fault:  ## inject each fault of tools/doc/faults.md, in its short form; ONLY='f10/*' picks some
	@$(DEPS) build run test fault node
	$(again) node || echo 'test-fault: what needs consumers in Node is skipped' >&2
	$(again) check-fault
test-fault-asan:  ## run test-fault under AddressSanitizer and UBSan
	@$(DEPS) build run test fault
	$(again) BUILD=$(BUILD)/asan SAN=address,undefined check-fault
check-fault: all $(TESTS) $(BUILD)/tests/fault $(BUILD)/history-check $(PRELOAD) $(BROKEN)
	@rm -f $(BUILD)/fault.rows
	@tests/run.sh $(BUILD) fault; e=$$?; tests/fault/table.sh $(BUILD); exit $$e
soak:  ## inject each fault with the figures of the table; takes hours
	@$(DEPS) build run test fault node
	$(again) node || echo 'soak: what needs consumers in Node is skipped' >&2
	@LAPSE_SOAK=1 $(MAKE) --no-print-directory check-fault

.PHONY: objects node check test-tsan test-helgrind run-threads test-asan test-msan check-msan test-acl test-servers check-tls test-valgrind coverage check-coverage test-trixie \
    test-fault test-fault-asan check-fault soak steady fuzz run-fuzz mutate
