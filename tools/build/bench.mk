# SPDX-License-Identifier: MIT
# Measures lapse beside what else one would use.

RIVALS := lapse zset expired beanstalk native
run-bench: all $(BUILD)/bench/spread $(RIVALS:%=$(BUILD)/bench/%)
	@tests/bench/run.sh $(BUILD)
$(BUILD)/bench/spread: $(OBJ)/tests/bench/spread.o
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^
$(RIVALS:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(addprefix $(OBJ)/tests/bench/,%.o bench.o pipe.o) $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

.PHONY: run-bench
