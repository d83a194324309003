# SPDX-License-Identifier: MIT
# How C is compiled and linked.

WARN := -Wall -Wextra -Wconversion
SAN  :=
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)

# Some hardening flags are unknown to some compilers or machines. _FORTIFY_SOURCE needs optimisation; sanitizers have
# better checks; and a distribution may have set it already.
PROBED := -fcf-protection=full -mbranch-protection=standard -fstack-clash-protection -ftrivial-auto-var-init=zero
known   = $(shell for f in $(1); do $(CC) -Werror $$f -x c -c -o /dev/null /dev/null 2>/dev/null && echo $$f; done)
HARDEN := -fstack-protector-strong -Wformat=2 -Werror=format-security $(call known,$(PROBED))
FORTIFY = $(if $(SAN)$(filter -O0 -Og,$(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-D_FORTIFY_SOURCE=3)

BASE := -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -Iinclude $(HARDEN) $(FORTIFY) $(SANFLAGS)
# What differs where lapse is built with TLS.
TLS_O := $(OBJ)/src/redis/tls.o $(OBJ)/src/redis/transport.o
# No link-time optimisation for the library: ld -r and objcopy need machine code.
FLAGS_src   = -fPIC -fvisibility=hidden -Isrc -I$(BUILD) $(if $(filter $(OBJ)/src/cron/%,$@),$(CRON_CFLAGS)) \
    $(if $(WITH_TLS),$(if $(filter $(TLS_O),$@),-DLAPSE_WITH_TLS)) $(CPPFLAGS) $(CFLAGS) -fno-lto
FLAGS_tools = -fPIE -Itools/lapse $(if $(filter $(OBJ)/tools/lapse/%,$@),-Isrc) -I$(BUILD) -DLAPSE_SHARE='"$(PREFIX)/share/lapse"' \
    $(if $(WITH_CRON),-DLAPSE_WITH_CRON) $(CPPFLAGS) $(CFLAGS)
# Tests are larger than what they test, mostly wait, and take longer to optimise than to run. (fault replaces malloc(),
# which AddressSanitizer bears only where accesses that are known to be valid are not checked, as by -O2.)
FLAGS_tests = -fPIE -Itests/kit $(INCLUDES_$(tests_folder)) $(if $(filter $(FOLDERS),$(tests_folder)),-O0 -U_FORTIFY_SOURCE) \
    $(CPPFLAGS) $(CFLAGS)
tests_folder = $(word 3,$(subst /, ,$(@:$(BUILD)/%=%)))
INCLUDES_unit  = -Isrc -I$(BUILD)
INCLUDES_lua   = -Isrc
INCLUDES_fuzz  = -Isrc -Itools/lapse -I$(BUILD)
INCLUDES_bench = -Isrc -Itools/lapse

LINK  = $(CC) $(if $(filter %.so.0,$@),-shared,-pie) -Wl,-z,relro,-z,now,-z,noexecstack $(SANFLAGS) $(CFLAGS) $(LDFLAGS)
LIBS := $(if $(WITH_TLS),$(TLS_LIBS)) -lhiredis -lev

$(TLS_O): $(BUILD)/prefix

$(OBJ)/src/%.o: src/%.c | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_src) -MMD -MP -c -o $@ $<
$(OBJ)/tools/%.o: tools/%.c $(BUILD)/prefix | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tools) -MMD -MP -c -o $@ $<
$(OBJ)/tests/%.o: tests/%.c | $(GENERATED)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) $(FLAGS_tests) -MMD -MP -c -o $@ $<
