# SPDX-License-Identifier: MIT
# `make help` lists the targets. CFLAGS, CPPFLAGS, LDFLAGS are the user's: added to ours, never replaced.
# BUILD=dir puts all output elsewhere (build/asan is such a one); V=1 shows whole commands.

BUILD  := build
PREFIX := /usr/local
LIBDIR := $(PREFIX)/lib
VERSION := $(shell sed -n 's/^.define LAPSE_VERSION "\(.*\)"/\1/p' include/lapse.h)

# ---- sources ----
LIB  := err mem clock log options reply keys job deliver conn sub script store wake work lapse
LUA  := schedule cancel reschedule get claim done retry fail release renew touch sweep resume listen depth list
TOOL := $(patsubst tools/%.c,%,$(wildcard tools/*.c))
EXAMPLES := $(patsubst tools/examples/%.c,%,$(wildcard tools/examples/*.c))
MAN  := $(notdir $(wildcard tools/man/*.[13]))
# one Criterion program per folder; fault is slow and has a target of its own
FOLDERS := $(foreach f,unit lua flow tools,$(if $(wildcard tests/$(f)/*.c),$(f)))
FAULT   := $(if $(wildcard tests/fault/*.c),fault)

# ---- flags ----
WARN := -Wall -Wextra -Wconversion
SAN  :=
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
BASE := -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -Iinclude $(SANFLAGS)
# no LTO here: ld -r and objcopy want machine code
FLAGS_src   = -fPIC -fvisibility=hidden -Isrc -I$(BUILD) $(CPPFLAGS) $(CFLAGS) -fno-lto
FLAGS_tools = -Itools -DLAPSE_SHARE='"$(PREFIX)/share/lapse"' $(CPPFLAGS) $(CFLAGS)
FLAGS_tests = -Itests/support $(if $(findstring /unit/,$@),-Isrc -I$(BUILD)) $(CPPFLAGS) $(CFLAGS)
LINK  = $(CC) $(SANFLAGS) $(CFLAGS) $(LDFLAGS)
LIBS := -lhiredis -lev

OBJ       := $(BUILD)/obj
LIB_O     := $(LIB:%=$(OBJ)/src/%.o)
TOOL_O    := $(TOOL:%=$(OBJ)/tools/%.o)
SUPPORT_O := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/support/*.c))
TESTS     := $(FOLDERS:%=$(BUILD)/tests/%)
GEN       := $(BUILD)/scripts.h $(BUILD)/script_ids.h
LUA_OUT   := $(LUA:%=$(BUILD)/lua/%.lua)

say = $(if $(V),,@echo '$(1) $(patsubst $(BUILD)/%,%,$(@:$(OBJ)/%=%))';)

all: lib $(if $(TOOL),$(BUILD)/lapse) $(EXAMPLES:%=$(BUILD)/examples/%)  ## library, program, examples (default)

lib: $(BUILD)/liblapse.a $(BUILD)/liblapse.so  ## the library only

# ---- objects ----
$(OBJ)/src/%.o: src/%.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_src) -MMD -MP -c -o $@ $<
$(OBJ)/tools/%.o: tools/%.c $(BUILD)/prefix
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tools) -MMD -MP -c -o $@ $<
$(OBJ)/tests/%.o: tests/%.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tests) -MMD -MP -c -o $@ $<

# the program knows where its redis.conf was installed, so another PREFIX is another program
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@

$(GEN) $(LUA_OUT) &: src/lua/prelude.lua $(LUA:%=src/lua/%.lua) tools/embed.sh Makefile
	$(call say,LUA)tools/embed.sh src/lua $(BUILD) $(LUA)

# ---- library ----
$(BUILD)/liblapse.a: $(LIB_O)
	$(call say,AR)$(LD) -r -o $(OBJ)/liblapse.o $(LIB_O)
	@objcopy --localize-hidden $(OBJ)/liblapse.o
	@rm -f $@ && $(AR) crs $@ $(OBJ)/liblapse.o
$(BUILD)/liblapse.so.0: $(LIB_O) tools/lapse.map
	$(call say,LD)$(LINK) -shared -Wl,-soname,liblapse.so.0 -Wl,--version-script=tools/lapse.map \
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
define criterion
$(BUILD)/tests/$(1): $(call folder_o,$(1)) $(SUPPORT_O) $(if $(filter unit,$(1)),$(LIB_O),$(BUILD)/liblapse.a)
	@mkdir -p $$(@D)
	$$(call say,LD)$$(LINK) -o $$@ $$^ -lcriterion $$(LIBS)
endef
$(foreach f,$(FOLDERS) $(FAULT),$(eval $(call criterion,$(f))))

check: all $(TESTS)  ## build and run the tests, install nothing; ONLY='cancel/*' picks some
	@tests/run.sh $(BUILD) $(FOLDERS)

test:  ## install what is missing, build, run unit, lua, flow and tools tests
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory check
test-asan:  ## the same under AddressSanitizer and UBSan; any report fails
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/asan SAN=address,undefined check
ifneq ($(FAULT),)
test-fault:  ## broken peers, lost memory, cut connections: slow
	@tools/install-deps.sh build run test
	@$(MAKE) --no-print-directory check-fault
check-fault: all $(BUILD)/tests/fault
	@tests/run.sh $(BUILD) fault
endif

# ---- for people ----
deps:  ## install what is missing (Debian 12 and 13)
	@tools/install-deps.sh build run test lint
demo:  ## install what is missing, build, and watch orders time out on a private Redis
	@tools/install-deps.sh build run
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tools/demo.sh
clean:  ## remove all output
	rm -rf $(BUILD)
help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 12

FORCE:
.PHONY: all lib check test test-asan test-fault check-fault deps demo clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
-include $(LIB_O:.o=.d) $(TOOL_O:.o=.d) $(wildcard $(OBJ)/tools/*/*.d $(OBJ)/tests/*/*.d)
