# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts beside the command line: its manual page, which it writes itself from the table of its
# commands, and the completions for the shells, in the folders where Debian's packages of them look.
set(MANUAL ${CMAKE_BINARY_DIR}/tellerline.1.gz)
add_custom_command(OUTPUT ${MANUAL}
    COMMAND tellerline manual > ${CMAKE_BINARY_DIR}/tellerline.1
    COMMAND gzip -9nf ${CMAKE_BINARY_DIR}/tellerline.1
    DEPENDS tellerline VERBATIM)
add_custom_target(tellerline_manual ALL DEPENDS ${MANUAL})
install(FILES ${MANUAL} DESTINATION share/man/man1)
install(FILES ctl/completion/tellerline.bash DESTINATION share/bash-completion/completions RENAME tellerline)
install(FILES ctl/completion/_tellerline DESTINATION share/zsh/vendor-completions)
install(FILES ctl/completion/tellerline.fish DESTINATION share/fish/vendor_completions.d)
