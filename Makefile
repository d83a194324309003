# SPDX-License-Identifier: MIT
# `make help` lists the targets. CFLAGS, CPPFLAGS, LDFLAGS are the user's: added to ours, never replaced.
# BUILD=dir puts all output elsewhere (build/asan is such a one); V=1 shows whole commands.

BUILD  := build
PREFIX := /usr/local
LIBDIR := $(PREFIX)/lib
VERSION := $(shell sed -n 's/^.define LAPSE_VERSION "\(.*\)"/\1/p' include/lapse.h)

# ---- sources ----
LIB  := err mem heap clock log sigpipe keys table url options refusal reply job deliver login hosts conn order script store held resume ring sub wake policy queue work request lapse
LUA_SRC := src/lua
LUA  := schedule cancel reschedule get claim done retry fail release renew touch arm sweep resume listen depth list policy
# scripts of the program alone
TOOL_LUA := check mend
TOOL := main args bench bench_ask bench_crew bench_keys bench_print bench_run bench_spread client dev doctor \
        doctor_jobs doctor_server doctor_user exec info job json lines list listen outlet password print say schedule server \
        text url value
EXAMPLES := demo order_timeout session_idle webhook_retry
MAN  := lapse.1 lapse.3
# one Criterion program per folder; fault is slow and has a target of its own
FOLDERS := unit lua flow tools

# ---- flags ----
WARN := -Wall -Wextra -Wconversion
SAN  :=
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Hardening. Not every compiler, nor every machine, knows all of it; sanitizers have better checks than _FORTIFY_SOURCE,
# which wants optimisation, and which distributions set themselves.
PROBED := -fcf-protection=full -mbranch-protection=standard -fstack-clash-protection -ftrivial-auto-var-init=zero
known   = $(shell for f in $(1); do $(CC) -Werror $$f -x c -c -o /dev/null /dev/null 2>/dev/null && echo $$f; done)
HARDEN := -fstack-protector-strong -Wformat=2 -Werror=format-security $(call known,$(PROBED))
FORTIFY = $(if $(SAN)$(filter -O0 -Og,$(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-D_FORTIFY_SOURCE=3)
BASE := -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -Iinclude $(HARDEN) $(FORTIFY) $(SANFLAGS)
# no LTO here: ld -r and objcopy want machine code
FLAGS_src   = -fPIC -fvisibility=hidden -Isrc -I$(BUILD) $(CPPFLAGS) $(CFLAGS) -fno-lto
FLAGS_tools = -fPIE -Itools -I$(BUILD) -DLAPSE_SHARE='"$(PREFIX)/share/lapse"' $(CPPFLAGS) $(CFLAGS)
FLAGS_tests = -fPIE -Itests/support $(if $(findstring /unit/,$@),-Isrc -I$(BUILD)) \
    $(if $(findstring /fault/,$@),-Itests/flow) $(if $(findstring /fuzz/,$@),-Isrc -Itools -I$(BUILD)) $(CPPFLAGS) $(CFLAGS)
LINK  = $(CC) $(if $(filter %.so.0,$@),-shared,-pie) -Wl,-z,relro,-z,now,-z,noexecstack $(SANFLAGS) $(CFLAGS) $(LDFLAGS)
LIBS := -lhiredis -lev

OBJ       := $(BUILD)/obj
LIB_O     := $(LIB:%=$(OBJ)/src/%.o)
TOOL_O    := $(TOOL:%=$(OBJ)/tools/%.o)
SUPPORT_O := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/support/*.c))
PRELOAD   := $(patsubst tests/preload/%.c,$(BUILD)/preload/%.so,$(wildcard tests/preload/*.c))
TESTS     := $(FOLDERS:%=$(BUILD)/tests/%)
GEN       := $(BUILD)/scripts.h $(BUILD)/script_ids.h $(BUILD)/tool_scripts.h
LUA_OUT   := $(patsubst %,$(BUILD)/lua/%.lua,$(LUA) $(TOOL_LUA))

say = $(if $(V),,@echo '$(1) $(patsubst $(BUILD)/%,%,$(@:$(OBJ)/%=%))';)

all: lib $(BUILD)/lapse $(EXAMPLES:%=$(BUILD)/examples/%)  ## library, program, examples (default)

lib: $(BUILD)/liblapse.a $(BUILD)/liblapse.so  ## the library only

# ---- objects ----
$(OBJ)/src/%.o: src/%.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_src) -MMD -MP -c -o $@ $<
$(OBJ)/tools/%.o: tools/%.c $(BUILD)/prefix | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tools) -MMD -MP -c -o $@ $<
$(OBJ)/tests/%.o: tests/%.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tests) -MMD -MP -c -o $@ $<

# the program knows where its redis.conf was installed, so another PREFIX is another program
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX) $(LIBDIR)' | cmp -s - $@ || echo '$(PREFIX) $(LIBDIR)' > $@

$(GEN) $(LUA_OUT) &: $(LUA_SRC)/prelude.lua $(patsubst %,$(LUA_SRC)/%.lua,$(LUA) $(TOOL_LUA)) tools/embed.sh Makefile
	$(call say,LUA)tools/embed.sh $(LUA_SRC) $(BUILD) $(LUA) -- $(TOOL_LUA)

# the rights that the scripts need
$(BUILD)/users.acl: tools/acl.sh $(LUA_OUT) $(LIB:%=src/%.c)
	$(call say,ACL)tools/acl.sh $(BUILD) file > $@.part && mv $@.part $@

# ---- library ----
$(BUILD)/liblapse.a: $(LIB_O)
	$(call say,AR)$(LD) -r -o $(OBJ)/liblapse.o $(LIB_O)
	@objcopy --localize-hidden $(OBJ)/liblapse.o
	@rm -f $@ && $(AR) crs $@ $(OBJ)/liblapse.o
$(BUILD)/liblapse.so.0: $(LIB_O) tools/lapse.map
	$(call say,LD)$(LINK) -Wl,-soname,liblapse.so.0 -Wl,--version-script=tools/lapse.map \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(LIB_O) $(LIBS)
$(BUILD)/liblapse.so: $(BUILD)/liblapse.so.0
	@ln -sf liblapse.so.0 $@

# ---- programs ----
$(BUILD)/lapse: $(TOOL_O) $(BUILD)/liblapse.a
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)
$(BUILD)/examples/%: $(OBJ)/tools/examples/%.o $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

# ---- tests ----
folder_o = $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/$(1)/*.c))
# the fault runs use the kit of flow
KIT_fault := $(patsubst %,$(OBJ)/tests/flow/%.o,flow flow_ask flow_state wire)
define criterion
$(BUILD)/tests/$(1): $(call folder_o,$(1)) $(KIT_$(1)) $(SUPPORT_O) $(if $(filter unit,$(1)),$(LIB_O),$(BUILD)/liblapse.a)
	@mkdir -p $$(@D)
	$$(call say,LD)$$(LINK) -o $$@ $$^ -lcriterion $$(LIBS)
endef
$(foreach f,$(FOLDERS) fault shown,$(eval $(call criterion,$(f))))

$(SUPPORT_O): | $(BUILD)/users.acl

# reads what the fault runs wrote; no lapse in it
$(BUILD)/history-check: $(call folder_o,history)
	$(call say,LD)$(LINK) -o $@ $^ -ljansson

# the fault runs with a guard of the scripts taken out, which must be noticed: tests/broken/NAME.sed says which
BROKEN := $(patsubst tests/broken/%.sed,$(BUILD)/broken/%/fault,$(wildcard tests/broken/*.sed))
$(BUILD)/broken/%/scripts.h: tests/broken/%.sed tests/broken/break.sh $(wildcard src/lua/*.lua) tools/embed.sh Makefile
	@tests/broken/break.sh $* $(@D)/src
	$(call say,LUA)tools/embed.sh $(@D)/src $(@D) $(LUA)
$(BUILD)/broken/%/script.o: src/script.c $(BUILD)/broken/%/scripts.h
	$(call say,CC)$(CC) $(BASE) -I$(@D) $(FLAGS_src) -c -o $@ $<
$(BUILD)/broken/%/fault: $(BUILD)/broken/%/script.o $(SUPPORT_O) $(LIB_O) \
    $(patsubst %,$(OBJ)/tests/fault/%.o,baseline crew events failover fault listeners workload) $(KIT_fault)
	$(call say,LD)$(LD) -r -o $(@D)/liblapse.o $< $(filter-out %/script.o,$(LIB_O))
	@objcopy --localize-hidden $(@D)/liblapse.o
	@$(LINK) -o $@ $(filter $(OBJ)/tests/%,$^) $(@D)/liblapse.o -lcriterion $(LIBS)

# what goes before the C library of a program under test
$(BUILD)/preload/%.so: tests/preload/%.c $(wildcard tests/preload/*.h)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -fPIC -shared -o $@ $<

# one program per file; its corpus is replayed with the other tests, and grown by make fuzz
FUZZ := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
REPLAYS := $(FUZZ:%=$(BUILD)/tests/fuzz-%)
FUZZ_S := 60
# --help ends a program; here it ends a try
$(BUILD)/args $(BUILD)/tests/fuzz-args: FUZZ_LINK := -Wl,--wrap=finish
# what a target defines by itself is not taken from here
$(BUILD)/parts.a: $(LIB_O) $(filter-out %/main.o,$(TOOL_O))
	$(call say,AR)rm -f $@ && $(AR) qcs $@ $^
$(REPLAYS): $(BUILD)/tests/fuzz-%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/replay.o $(BUILD)/parts.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) $(FUZZ_LINK) -o $@ $^ $(LIBS)
$(FUZZ:%=$(BUILD)/%): $(BUILD)/%: $(OBJ)/tests/fuzz/%.o $(BUILD)/parts.a
	$(call say,LD)$(LINK) $(FUZZ_LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# the header as C11 against the static library, as C++17 against the shared one
HEADERS := $(BUILD)/tests/header-c11 $(BUILD)/tests/header-cxx17
STRICT  := -Wall -Wextra -Wpedantic -Werror -O2 -g -Iinclude
$(BUILD)/tests/header-c11: tests/header/use.c include/lapse.h $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,CC)$(LINK) -std=c11 -fPIE $(STRICT) -o $@ $< $(BUILD)/liblapse.a $(LIBS)
$(BUILD)/tests/header-cxx17: tests/header/use.c include/lapse.h $(BUILD)/liblapse.so
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(SANFLAGS) $(CXXFLAGS) $(LDFLAGS) -x c++ -std=c++17 $(STRICT) -o $@ $< \
	    -x none -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -llapse -lev

objects: $(LIB_O) $(TOOL_O) $(EXAMPLES:%=$(OBJ)/tools/examples/%.o) $(SUPPORT_O) $(OBJ)/tools/doc/tables.o \
    $(foreach f,$(FOLDERS) fault fuzz history shown bench,$(call folder_o,$(f))) $(PRELOAD)

check: all $(HEADERS) $(TESTS) $(REPLAYS) $(BUILD)/history-check $(PRELOAD)  ## build and run the tests, install nothing; ONLY='cancel/*' picks some
	@tests/run.sh $(BUILD) $(notdir $(HEADERS)) $(notdir $(REPLAYS)) $(FOLDERS)

# valgrind sees what ASan does not, values never set: where bytes of others are read, and each verb once
VALGRIND_FLOW  := @(bad_input|data|foreign|get|list|settle|resume)/*
VALGRIND_TOOLS := @(list|schedule|text|cancel|depth|reschedule)/*

test:  ## install what is missing, build, run unit, lua, flow and tools tests
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory check
steady: all $(TESTS) $(BUILD)/history-check  ## unit, lua, flow and tools N=20 times, every other time on a busy machine; says what failed how often
	@tests/steady.sh $(BUILD) $(FOLDERS)
test-asan:  ## the same under AddressSanitizer and UBSan; any report fails
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SAN=address,undefined check
test-msan:  ## what the fuzzers keep, replayed under clang's MemorySanitizer
	@tools/install-deps.sh build lint
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/msan CC=clang SAN=memory check-msan
check-msan: $(REPLAYS)
	@tests/run.sh $(BUILD) $(notdir $(REPLAYS))
test-valgrind:  ## unit tests, and a part of flow and tools, under valgrind; any report fails
	@tools/install-deps.sh build run test valgrind
	@$(MAKE) --no-print-directory all $(TESTS)
	@VALGRIND=1 tests/run.sh $(BUILD) unit 'flow=$(VALGRIND_FLOW)' 'tools=$(VALGRIND_TOOLS)'
coverage:  ## what unit, lua, flow and tools tests run of src/, a line a file; fails under 95 % of lines, 85 % of branches
	@tools/install-deps.sh build run test coverage
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/cov CFLAGS='$(CFLAGS) --coverage -O0' CXXFLAGS='$(CXXFLAGS) --coverage' \
	    LDFLAGS='$(LDFLAGS) -Wl,--wrap=_exit,--wrap=abort $(BUILD)/cov/flush.o' check-coverage
check-coverage:
	@mkdir -p $(BUILD); find $(BUILD) -name '*.gcda' -delete
	@$(CC) $(BASE) -c -o $(BUILD)/flush.o tests/coverage/flush.c
	@$(MAKE) --no-print-directory check
	@tests/coverage/report.sh $(BUILD)
test-trixie:  ## the tests on Debian 13, in a root made once: hiredis 1.2, Redis 8 and Valkey 8.1; needs root and debootstrap
	@tools/trixie.sh
fuzz:  ## let libFuzzer try what comes from outside for FUZZ_S seconds (60) each; ONLY='url job' picks some
	@tools/install-deps.sh build lint
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/libfuzzer CC=clang SAN=fuzzer-no-link,address,undefined run-fuzz
run-fuzz: $(FUZZ:%=$(BUILD)/%)
	@tests/fuzz/run.sh $(BUILD) $(FUZZ_S) $(or $(ONLY),$(FUZZ))
test-acl:  ## the flows again as users with the rights that README names, and no others
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory all $(BUILD)/tests/flow
	@LAPSE_TEST_ACL=listener tests/run.sh $(BUILD) flow
	@LAPSE_TEST_ACL=producer tests/run.sh $(BUILD) flow
mutate:  ## each condition of the scripts made true, and false: do the tests notice? ONLY='claim.lua' picks some
	@tools/install-deps.sh build run test lint
	@$(MAKE) --no-print-directory all $(BUILD)/tests/lua
	@tests/mutate/run.sh $(BUILD)
test-fault:  ## what breaks, broken on purpose: the short form of each row; ONLY='f10/*' picks some
	@tools/install-deps.sh build run test fault
	@$(MAKE) --no-print-directory check-fault
test-fault-asan:  ## the same under AddressSanitizer and UBSan
	@tools/install-deps.sh build run test fault
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SAN=address,undefined check-fault
check-fault: all $(TESTS) $(BUILD)/tests/fault $(BUILD)/history-check $(PRELOAD) $(BROKEN)
	@rm -f $(BUILD)/fault.rows
	@tests/run.sh $(BUILD) fault; e=$$?; tests/fault/table.sh $(BUILD); exit $$e
soak:  ## the same with all its figures: hours
	@tools/install-deps.sh build run test fault
	@LAPSE_SOAK=1 $(MAKE) --no-print-directory check-fault

shown: $(BUILD)/tests/shown  ## the figures that are promised, measured; fails if a job is lost, early or twice
	@LAPSE_TEST_BUILD=$(BUILD) $(BUILD)/tests/shown $(ONLY)

# ---- the bench ----
RIVALS := lapse zset expired beanstalk native
bench:  ## install what is missing, and measure lapse beside what else one would use; QUICK=1: in 3 minutes
	@tools/install-deps.sh build run
	@tools/install-deps.sh bench || echo 'bench: the peers that are not installed are not run' >&2
	@$(MAKE) --no-print-directory all $(BUILD)/bench/spread $(RIVALS:%=$(BUILD)/bench/%)
	@tests/bench/run.sh $(BUILD)
$(BUILD)/bench/spread: $(OBJ)/tests/bench/spread.o
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^
$(RIVALS:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(addprefix $(OBJ)/tests/bench/,%.o bench.o pipe.o) $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

# ---- checks and tables ----
lint:  ## install what is missing, and check layers, symbols, format, warnings, Lua, sizes; CHECK='lua man' picks some
	@tools/install-deps.sh build run test lint
	@$(MAKE) --no-print-directory all $(BUILD)/tables
	+@tools/lint/lint.sh $(BUILD) $(CHECK)
fmt:  ## lay out the C files; lapse.h is laid out by hand
	clang-format -i $(wildcard src/*.[ch] tools/*.[ch] tools/*/*.[ch] tests/*/*.[ch])
doc: $(BUILD)/tables  ## rewrite the tables of README.md from the code
	tools/doc.sh $(BUILD)
$(OBJ)/tools/doc/tables.o: tools/doc/tables.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) -Isrc $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tables: $(OBJ)/tools/doc/tables.o $(LIB_O)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

# ---- install ----
$(BUILD)/lapse.pc: tools/lapse.pc.in include/lapse.h $(BUILD)/prefix
	$(call say,GEN)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    tools/lapse.pc.in > $@.part && mv $@.part $@

SHARE := $(PREFIX)/share
INSTALLED = $(PREFIX)/include/lapse.h $(LIBDIR)/liblapse.a $(LIBDIR)/liblapse.so.0 $(LIBDIR)/liblapse.so \
    $(LIBDIR)/pkgconfig/lapse.pc $(PREFIX)/bin/lapse $(SHARE)/lapse/redis.conf \
    $(foreach m,$(MAN),$(SHARE)/man/man$(subst .,,$(suffix $(m)))/$(m)) \
    $(EXAMPLES:%=$(SHARE)/doc/lapse/examples/%.c)
install: all $(BUILD)/lapse.pc  ## PREFIX, DESTDIR and LIBDIR say where
	install -Dm644 include/lapse.h $(DESTDIR)$(PREFIX)/include/lapse.h
	install -Dm644 $(BUILD)/liblapse.a $(DESTDIR)$(LIBDIR)/liblapse.a
	install -Dm644 $(BUILD)/liblapse.so.0 $(DESTDIR)$(LIBDIR)/liblapse.so.0
	ln -sf liblapse.so.0 $(DESTDIR)$(LIBDIR)/liblapse.so
	install -Dm644 $(BUILD)/lapse.pc $(DESTDIR)$(LIBDIR)/pkgconfig/lapse.pc
	install -Dm755 $(BUILD)/lapse $(DESTDIR)$(PREFIX)/bin/lapse
	install -Dm644 redis.conf $(DESTDIR)$(SHARE)/lapse/redis.conf
	for m in $(MAN); do install -Dm644 tools/man/$$m $(DESTDIR)$(SHARE)/man/man$${m##*.}/$$m || exit 1; done
	for e in $(EXAMPLES); do \
	    install -Dm644 tools/examples/$$e.c $(DESTDIR)$(SHARE)/doc/lapse/examples/$$e.c || exit 1; done
uninstall:  ## with the same PREFIX, DESTDIR and LIBDIR
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	-rmdir $(DESTDIR)$(SHARE)/lapse $(DESTDIR)$(SHARE)/doc/lapse/examples $(DESTDIR)$(SHARE)/doc/lapse

# ---- for people ----
deps:  ## install what is missing (Debian 12 and 13)
	@tools/install-deps.sh build run test lint coverage fault valgrind
demo:  ## install what is missing, build, and watch orders time out on a private Redis
	@tools/install-deps.sh build run
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tools/demo.sh
clean:  ## remove all output
	rm -rf $(BUILD)
help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 12

FORCE:
.PHONY: all lib objects check test steady test-asan test-msan check-msan test-acl test-valgrind coverage check-coverage test-trixie test-fault \
    test-fault-asan check-fault soak fuzz run-fuzz mutate shown bench lint fmt doc install uninstall deps demo clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
-include $(LIB_O:.o=.d) $(TOOL_O:.o=.d) $(wildcard $(OBJ)/tools/*/*.d $(OBJ)/tests/*/*.d)
