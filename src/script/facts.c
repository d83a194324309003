/* SPDX-License-Identifier: MIT */
/* The scripts of src/lua, as the build made them. */
#include "script_facts.h"
#include "script_texts.h"
