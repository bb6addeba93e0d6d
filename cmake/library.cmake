# SPDX-License-Identifier: Apache-2.0
# The line as a library of Redis Functions: the modules of common/store/line/ and the functions that programs call, in the
# .lua files of their folders. What both C and Lua know stands in common/wire/protocol.def.

# tellerline_library(TARGET FOLDERS folder... MODULES name...): TARGET, and what links it, finds "generated/library.h": the
# name of the library, and for each function NAME its name in the store, TL_FN_NAME. TARGET alone embeds the text; the
# target `library` writes it to library/library.lua of the build. The modules are joined in the given order, each between `do` and `end`; then come the functions.
#
# All names carry the hash of the text. So two builds never mean different things by one name, and releases and
# roll-backs live side by side in one store.
function(tellerline_library target)
    cmake_parse_arguments(PARSE_ARGV 1 LIBRARY "" "" "FOLDERS;MODULES")
    get_target_property(view ${target} TELLERLINE_VIEW)
    set(parts "")
    foreach(folder IN LISTS LIBRARY_FOLDERS)
        file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.lua)
        file(GLOB prelude CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/store/prelude*.lua)
        string(REPLACE "/" "_" name ${folder})
        set(part ${CMAKE_BINARY_DIR}/library/${name}.lua)
        add_custom_command(
            OUTPUT ${part}
            COMMAND ${CMAKE_COMMAND} -DOUT=${part} -DPROTOCOL=${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                    -DPRELUDE=${CMAKE_SOURCE_DIR}/common/store/prelude.lua "-DSCRIPTS=${scripts}"
                    -P ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake
            DEPENDS ${scripts} ${prelude} ${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                    ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake ${CMAKE_SOURCE_DIR}/cmake/protocol.cmake
            VERBATIM)
        list(APPEND parts ${part})
    endforeach()
    list(TRANSFORM LIBRARY_MODULES REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/common/store/line/\\1.lua" OUTPUT_VARIABLE modules)
    set(head ${CMAKE_SOURCE_DIR}/common/store/line/head.lua)
    set(header ${view}/generated/library.h)
    set(text ${view}/generated/library_text.h)
    set(lua ${CMAKE_BINARY_DIR}/library/library.lua)
    add_custom_command(
        OUTPUT ${header} ${text} ${lua}
        COMMAND ${CMAKE_COMMAND} -DHEADER=${header} -DTEXT=${text} -DLUA=${lua} -DHEAD=${head} "-DMODULES=${modules}"
                "-DPARTS=${parts}" -DPROTOCOL=${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                -P ${CMAKE_SOURCE_DIR}/cmake/join_library.cmake
        DEPENDS ${head} ${modules} ${parts} ${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                ${CMAKE_SOURCE_DIR}/cmake/join_library.cmake ${CMAKE_SOURCE_DIR}/cmake/protocol.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${header} ${text})
    add_custom_target(library DEPENDS ${lua})
endfunction()
