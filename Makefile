# SPDX-License-Identifier: MIT
# `make help` lists what users need, `make help-dev` the rest. CFLAGS, CPPFLAGS and LDFLAGS are the user's: they are
# added to ours and never replace them. BUILD=dir puts all output elsewhere; V=1 shows whole commands.

BUILD   := build
PREFIX  := /usr/local
LIBDIR  := $(PREFIX)/lib
VERSION := $(shell sed -n 's/^.define LAPSE_VERSION "\(.*\)"/\1/p' include/lapse.h)

# liblapse-cron, and `lapse cron`, need GLib and are left out where that is not there, or by CRON=no.
CRON      := $(shell pkg-config --exists glib-2.0 2>/dev/null && echo yes || echo no)
WITH_CRON := $(filter yes,$(CRON))
CRON_CFLAGS := $(if $(WITH_CRON),$(shell pkg-config --cflags glib-2.0))
CRON_LIBS   := $(if $(WITH_CRON),$(shell pkg-config --libs glib-2.0))
LIBRARIES   := liblapse liblapse-sync $(if $(WITH_CRON),liblapse-cron)

# rediss:// needs hiredis_ssl, which hiredis has since 1.0, and OpenSSL; it is refused where they are not there, or by
# TLS=no.
TLS      := $(shell pkg-config --exists hiredis_ssl openssl 2>/dev/null && echo yes || echo no)
WITH_TLS := $(filter yes,$(TLS))
TLS_LIBS := $(if $(WITH_TLS),$(shell pkg-config --libs hiredis_ssl openssl))

OBJ  := $(BUILD)/obj
DEPS := tools/build/install-deps.sh
say   = $(if $(V),,@echo '$(1) $(patsubst $(BUILD)/%,%,$(@:$(OBJ)/%=%))';)
# with as many compilers at a time as there are cores, unless -j was given
again = @+$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

EXAMPLES := $(patsubst tools/examples/%.c,%,$(wildcard tools/examples/*.c))

all: lib $(BUILD)/lapse $(EXAMPLES:%=$(BUILD)/examples/%)  ## build the library, the program and the examples (default)

lib: $(foreach l,$(LIBRARIES),$(addprefix $(BUILD)/$l,.a .so))  ## build the libraries only

demo:  ## install what is missing, build, and watch orders time out on a private Redis
	@$(DEPS) build run
	$(again) all
	@BUILD=$(BUILD) tools/build/demo.sh

test:  ## install what is missing, build, and run the tests; ONLY='cancel/*' selects some
	@$(DEPS) build run test node
	$(again) node || echo 'test: the tests of the example for Node are skipped' >&2
	$(again) check

bench:  ## install what is missing, and measure lapse beside its peers; QUICK=1 takes 5 minutes; a broken promise fails
	@$(DEPS) build run
	@$(DEPS) bench || echo 'bench: peers that are not installed are skipped' >&2
	$(again) run-bench

deps:  ## install everything that building, testing and linting need (Debian 12 and 13)
	@$(DEPS) build run test node lint coverage fault valgrind model

clean:  ## remove all output
	rm -rf $(BUILD)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile tools/build/install.mk | expand -t 12

help-dev:  ## the targets for those who change lapse
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' tools/build/tests.mk tools/build/checks.mk | expand -t 18

include tools/build/library.mk
include tools/build/program.mk
include tools/build/flags.mk
include tools/build/tests.mk
include tools/build/bench.mk
include tools/build/checks.mk
include tools/build/install.mk

FORCE:
.PHONY: all lib demo test bench deps clean help help-dev FORCE
.DELETE_ON_ERROR:
.SECONDARY:
-include $(LIB_O:.o=.d) $(SYNC_O:.o=.d) $(CRON_O:.o=.d) $(TOOL_O:.o=.d) $(wildcard $(OBJ)/tools/*/*.d $(OBJ)/tests/*/*.d)
