# SPDX-License-Identifier: Apache-2.0
# tellerline_embed_lua(TARGET FOLDER): every Lua script of a folder becomes a C string: FOLDER/NAME.lua is
# `tl_script_NAME` in "generated/LAST_scripts.h", LAST being the last part of FOLDER's path. A script is preceded by
# common/wire/protocol.def and common/store/prelude.lua, which hold what all of them use, and by the parts that its header names
# (cmake/embed_scripts.cmake).
function(tellerline_embed_lua target folder)
    file(GLOB SCRIPTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.lua)
    file(GLOB PRELUDE CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/store/prelude*.lua)
    if(NOT SCRIPTS)
        return()
    endif()
    get_filename_component(last ${folder} NAME)
    get_target_property(view ${target} TELLERLINE_VIEW)
    set(HEADER ${view}/generated/${last}_scripts.h)
    add_custom_command(
        OUTPUT ${HEADER}
        COMMAND ${CMAKE_COMMAND} -DOUT=${HEADER} -DPROTOCOL=${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                -DPRELUDE=${CMAKE_SOURCE_DIR}/common/store/prelude.lua "-DSCRIPTS=${SCRIPTS}"
                -P ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake
        DEPENDS ${SCRIPTS} ${PRELUDE} ${CMAKE_SOURCE_DIR}/common/wire/protocol.def
                ${CMAKE_SOURCE_DIR}/cmake/embed_scripts.cmake ${CMAKE_SOURCE_DIR}/cmake/protocol.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${HEADER})
endfunction()
