# SPDX-License-Identifier: Apache-2.0
# The line as a library of Redis Functions: the modules of common/store/line/, and the functions that programs call, which
# stand in the .lua files beside those programs.

# tellerline_library(TARGET FOLDERS folder... MODULES name...): TARGET, and what links it, finds "generated/library.h": the
# name of the library, and for each function NAME its name in the store, TL_FN_NAME. TARGET alone embeds the text; the
# target `library` writes it to library/library.lua of the build. The modules are joined in the given order, then the files
# of the folders (cmake/join_library.cmake).
#
# All names carry the hash of the text. So two builds never mean different things by one name, and releases and
# roll-backs live side by side in one store.
function(tellerline_library target)
    cmake_parse_arguments(PARSE_ARGV 1 LIBRARY "" "" "FOLDERS;MODULES")
    get_target_property(view ${target} TELLERLINE_VIEW)
    set(line ${CMAKE_SOURCE_DIR}/common/store/line)
    set(protocol ${CMAKE_SOURCE_DIR}/common/wire/protocol.def)
    list(TRANSFORM LIBRARY_MODULES REPLACE "(.+)" "${line}/\\1.lua" OUTPUT_VARIABLE modules)
    list(TRANSFORM LIBRARY_FOLDERS REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/\\1/*.lua" OUTPUT_VARIABLE patterns)
    file(GLOB functions CONFIGURE_DEPENDS ${patterns})
    set(header ${view}/generated/library.h)
    set(text ${view}/generated/library_text.h)
    set(lua ${CMAKE_BINARY_DIR}/library/library.lua)
    add_custom_command(
        OUTPUT ${header} ${text} ${lua}
        COMMAND ${CMAKE_COMMAND} -DHEADER=${header} -DTEXT=${text} -DLUA=${lua} -DHEAD=${line}/head.lua
                "-DMODULES=${modules}" "-DFUNCTIONS=${functions}" -DPROTOCOL=${protocol}
                -P ${CMAKE_SOURCE_DIR}/cmake/join_library.cmake
        DEPENDS ${line}/head.lua ${modules} ${functions} ${protocol} ${CMAKE_SOURCE_DIR}/cmake/join_library.cmake
                ${CMAKE_SOURCE_DIR}/cmake/protocol.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${header} ${text})
    add_custom_target(library DEPENDS ${lua})
endfunction()
