# SPDX-License-Identifier: MIT
# The libraries, and the Lua scripts that are embedded in the first.

SYNC_C := $(wildcard src/sync/*.c)
SYNC_O := $(SYNC_C:%.c=$(OBJ)/%.o)
CRON_C := $(wildcard src/cron/*.c)
CRON_O := $(CRON_C:%.c=$(OBJ)/%.o)
LIB_C  := $(filter-out $(SYNC_C) $(CRON_C),$(wildcard src/*/*.c))
LIB_O  := $(LIB_C:%.c=$(OBJ)/%.o)

LUA_SRC   := src/lua
LUA       := $(wildcard $(LUA_SRC)/*/*.lua)
LUA_TOOLS := tools/build/scripts.py tools/build/lua_text.py
LUA_OUT   := $(patsubst %,$(BUILD)/lua/%,$(notdir $(filter-out $(LUA_SRC)/lib/%,$(LUA))))
GENERATED := $(addprefix $(BUILD)/,script_facts.h script_texts.h script_replies.h tool_scripts.h tool_functions.h \
    functions.lua)

$(GENERATED) $(LUA_OUT) &: $(LUA) $(LUA_TOOLS)
	$(call say,LUA)tools/build/scripts.py build $(LUA_SRC) $(BUILD)

# the Redis users that have just the rights that the scripts need
$(BUILD)/users.acl: $(LUA) $(LUA_TOOLS)
	@mkdir -p $(@D)
	$(call say,ACL)tools/build/scripts.py users $(LUA_SRC) file > $@.part && mv $@.part $@

$(BUILD)/liblapse.a: $(LIB_O)
	$(call say,AR)$(LD) -r -o $(OBJ)/liblapse.o $(LIB_O)
	@objcopy --localize-hidden $(OBJ)/liblapse.o
	@rm -f $@ && $(AR) crs $@ $(OBJ)/liblapse.o
$(BUILD)/liblapse.so.0: $(LIB_O) tools/build/lapse.map
	$(call say,LD)$(LINK) -Wl,-soname,liblapse.so.0 -Wl,--version-script=tools/build/lapse.map \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(LIB_O) $(LIBS)
$(BUILD)/liblapse.so: $(BUILD)/liblapse.so.0
	@ln -sf liblapse.so.0 $@

# liblapse-sync uses liblapse by lapse.h alone, so each can be updated by itself. It has a copy of ASSERT() of its own.
SYNC_ALL := $(SYNC_O) $(OBJ)/src/base/error.o
$(BUILD)/liblapse-sync.a: $(SYNC_ALL)
	$(call say,AR)$(LD) -r -o $(OBJ)/liblapse-sync.o $(SYNC_ALL)
	@objcopy --wildcard --keep-global-symbol='lapse_sync_*' $(OBJ)/liblapse-sync.o
	@rm -f $@ && $(AR) crs $@ $(OBJ)/liblapse-sync.o
$(BUILD)/liblapse-sync.so.0: $(SYNC_ALL) $(BUILD)/liblapse.so.0 tools/build/lapse-sync.map
	$(call say,LD)$(LINK) -pthread -Wl,-soname,liblapse-sync.so.0 -Wl,--version-script=tools/build/lapse-sync.map \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(SYNC_ALL) $(BUILD)/liblapse.so.0 -lev
$(BUILD)/liblapse-sync.so: $(BUILD)/liblapse-sync.so.0
	@ln -sf liblapse-sync.so.0 $@

# liblapse-cron takes zones from GLib and nothing from liblapse, so the other libraries do not depend on GLib.
CRON_ALL := $(CRON_O) $(OBJ)/src/base/span.o
$(BUILD)/liblapse-cron.a: $(CRON_ALL)
	$(call say,AR)$(LD) -r -o $(OBJ)/liblapse-cron.o $(CRON_ALL)
	@objcopy --wildcard --keep-global-symbol='lapse_cron_*' $(OBJ)/liblapse-cron.o
	@rm -f $@ && $(AR) crs $@ $(OBJ)/liblapse-cron.o
$(BUILD)/liblapse-cron.so.0: $(CRON_ALL) tools/build/lapse-cron.map
	$(call say,LD)$(LINK) -Wl,-soname,liblapse-cron.so.0 -Wl,--version-script=tools/build/lapse-cron.map \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(CRON_ALL) $(CRON_LIBS)
$(BUILD)/liblapse-cron.so: $(BUILD)/liblapse-cron.so.0
	@ln -sf liblapse-cron.so.0 $@
