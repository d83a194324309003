# SPDX-License-Identifier: MIT
# The benchmarks of lapse and of what one would use instead.

BENCHED   := lapse zset expired beanstalk native reader firing
BENCH_KIT := $(addprefix $(OBJ)/tests/bench/,bench.o arguments.o produce.o listen.o pipe.o)
run-bench: all $(BENCHED:%=$(BUILD)/bench/%) $(BUILD)/bench/threads $(BUILD)/bench/wire
	@python3 -B tests/bench/run.py $(BUILD)
$(BENCHED:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(OBJ)/tests/bench/%.o $(BENCH_KIT) $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)
$(BUILD)/bench/threads: $(OBJ)/tests/bench/threads.o $(BENCH_KIT) $(BUILD)/liblapse-sync.a $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -pthread -o $@ $^ $(LIBS)
# the network of `lapse bench --rtt`, for all systems
$(BUILD)/bench/wire: $(OBJ)/tests/bench/wire.o $(BUILD)/parts.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(CRON_LIBS) $(LIBS)

.PHONY: run-bench
