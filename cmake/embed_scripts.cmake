# Run with -P: writes OUT, a header with one C string per script in SCRIPTS. A script is preceded by the PRELUDE and by
# the parts that its header names: "-- Parts: NAME..." stands for the files NAME.lua, in this order, of the script's own
# folder or of the prelude's; those of the prelude come first. A part has a dot in its name (apply.joins, prelude.runs)
# and is no script itself. The line "-- Flags: NAME" makes Redis run the script with these flags: "#!lua flags=NAME"
# becomes the first line of all.
#
# The parts of the prelude become a function of their own, which is called at once, and what follows them another one
# within. Redis runs the whole text at each call,
# so it makes all its functions each time; and for each local variable of the running function that a new function uses,
# Lua walks a list of those used before. One of an enclosing function is found at once. That saves 5 % of the instructions
# that Redis runs for an apply of one join. A function can use 60 local variables of those around it.
function(to_c_string text result)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(${result} "    \"${text}\"" PARENT_SCOPE)
endfunction()

# Reads the parts of a script: those of the prelude, and its own.
function(read_parts script prelude_folder of_prelude own)
    file(STRINGS ${script} line REGEX "^-- Parts: " LIMIT_COUNT 1)
    string(REGEX REPLACE "^-- Parts: *" "" names "${line}")
    separate_arguments(names UNIX_COMMAND "${names}")
    get_filename_component(folder ${script} DIRECTORY)
    set(own_text "")
    set(prelude_text "")
    foreach(name IN LISTS names)
        if(EXISTS ${folder}/${name}.lua)
            file(READ ${folder}/${name}.lua part)
            string(APPEND own_text "${part}")
        else()
            file(READ ${prelude_folder}/${name}.lua part)
            string(APPEND prelude_text "${part}")
        endif()
    endforeach()
    set(${of_prelude} "${prelude_text}" PARENT_SCOPE)
    set(${own} "${own_text}" PARENT_SCOPE)
endfunction()

function(read_flags script result)
    file(STRINGS ${script} line REGEX "^-- Flags: " LIMIT_COUNT 1)
    string(REGEX REPLACE "^-- Flags: *" "" flags "${line}")
    set(${result} "" PARENT_SCOPE)
    if(flags)
        set(${result} "#!lua flags=${flags}\n" PARENT_SCOPE)
    endif()
endfunction()

file(READ ${PRELUDE} prelude)
get_filename_component(prelude_folder ${PRELUDE} DIRECTORY)
set(content "/* Made from the .lua files by cmake/embed_scripts.cmake; do not edit. */\n#pragma once\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n")
foreach(script IN LISTS SCRIPTS)
    get_filename_component(name ${script} NAME_WLE)
    if(script STREQUAL PRELUDE OR name MATCHES "\\.")
        continue()
    endif()
    read_parts(${script} ${prelude_folder} of_prelude own)
    read_flags(${script} flags)
    file(READ ${script} body)
    set(of_script "return (function()\n${own}${body}end)()\n")
    to_c_string("${flags}${prelude}return (function()\n${of_prelude}${of_script}end)()\n" literal)
    string(APPEND content "static const char tl_script_${name}[] =\n${literal};\n")
endforeach()
file(WRITE ${OUT} "${content}")
