# SPDX-License-Identifier: MIT
# The program `lapse`, and the examples.

TOOL_C := $(wildcard tools/lapse/*.c tools/lapse/*/*.c)
TOOL_O := $(TOOL_C:%.c=$(OBJ)/%.o)

# The program knows where its redis.conf was installed, and whether it has cron lines, and the library whether it has TLS:
# another PREFIX, CRON or TLS makes others.
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX) $(LIBDIR) $(CRON) $(TLS)' | cmp -s - $@ || echo '$(PREFIX) $(LIBDIR) $(CRON) $(TLS)' > $@

# What the program shares with the library and what lapse.h does not show: how numbers, durations, URLs, ids and the
# names of keys are written, which slot a key is in, what Redis's errors mean, and a timer that is exact to the
# microsecond. Nothing of it is installed.
INTERNAL := base/span base/quantity base/clock base/timer base/exact_timer job/keys job/series job/group \
    redis/address redis/redis_error redis/slot redis/tls
$(BUILD)/internal.a: $(INTERNAL:%=$(OBJ)/src/%.o) tools/build/program.mk
	$(call say,AR)rm -f $@ && $(AR) crs $@ $(filter %.o,$^)

$(BUILD)/lapse: $(TOOL_O) $(BUILD)/internal.a $(if $(WITH_CRON),$(BUILD)/liblapse-cron.a) $(BUILD)/liblapse.a
	$(call say,LD)$(LINK) -o $@ $^ $(CRON_LIBS) $(LIBS)
# one example has threads; the others take nothing of liblapse-sync
$(BUILD)/examples/%: $(OBJ)/tools/examples/%.o $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)
