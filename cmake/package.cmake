# SPDX-License-Identifier: Apache-2.0
# The Debian package, by CPack: `deploy/package` makes it. What only the package has is installed only with
# TELLERLINE_PACKAGE, so that a plain `cmake --install` puts programs where it is told to and nothing into /etc.
option(TELLERLINE_PACKAGE "Prepare the Debian package: cpack -G DEB then makes it" OFF)
set(TELLERLINE_PACKAGE_REVISION "1" CACHE STRING "The Debian revision: what follows the dash in the package's version")
# As Debian's own tools do: who builds the package says so. Without that it is the administrator of this machine.
set(TELLERLINE_PACKAGE_MAINTAINER "root <root@localhost>")
if(DEFINED ENV{DEBEMAIL} AND DEFINED ENV{DEBFULLNAME})
    set(TELLERLINE_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
if(NOT TELLERLINE_PACKAGE)
    return()
endif()

set(PACKAGE_FOLDER ${CMAKE_BINARY_DIR}/debian)
set(PACKAGE_DOC share/doc/tellerline)
file(MAKE_DIRECTORY ${PACKAGE_FOLDER})

# Debian 12 looks for units in /lib only, later releases only in /usr/lib.
cmake_host_system_information(RESULT DEBIAN_RELEASE QUERY DISTRIB_VERSION_ID)
if(DEBIAN_RELEASE AND DEBIAN_RELEASE VERSION_LESS 13)
    set(PACKAGE_UNITS /lib/systemd/system)
else()
    set(PACKAGE_UNITS /usr/lib/systemd/system)
endif()

# ---- the configuration: that of conf/, fit for a server ----

# package_replace(VARIABLE PATTERN REPLACEMENT): what is not found is a mistake here, not a silent difference there.
function(package_replace text pattern replacement)
    string(REGEX REPLACE "${pattern}" "${replacement}" replaced "${${text}}")
    if(replaced STREQUAL "${${text}}")
        message(FATAL_ERROR "conf/tellerline.yaml has changed: cmake/package.cmake finds no ${pattern}")
    endif()
    set(${text} "${replaced}" PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/tellerline.yaml)
file(READ ${CMAKE_SOURCE_DIR}/conf/tellerline.yaml PACKAGE_CONFIG)
# The Redis of this machine.
package_replace(PACKAGE_CONFIG "Where the state is[^\n]*\n  # url:" "Where the state is.\n  url:")
# A reverse proxy in front speaks TLS; nothing is open to the network before somebody wants it.
package_replace(PACKAGE_CONFIG "\nhttp:\n" "
http:
  # For a reverse proxy on this machine.
  listen: 127.0.0.1:8080
")
package_replace(PACKAGE_CONFIG "conf/reference.yaml" "/usr/share/doc/tellerline/reference.yaml")
package_replace(PACKAGE_CONFIG "docs/operators/configuration.md" "/usr/share/doc/tellerline/docs/operators/configuration.md")
# The workers' keys, and those of operators, which are tellerline-control's. No queue of ours: the example stays,
# commented out.
string(REGEX MATCH "\n# Created at the first start.*$" PACKAGE_QUEUES "${PACKAGE_CONFIG}")
string(REPLACE "\nqueues:" "\n# queues:" PACKAGE_QUEUES_OUT "${PACKAGE_QUEUES}")
string(REPLACE "\n  " "\n#   " PACKAGE_QUEUES_OUT "${PACKAGE_QUEUES_OUT}")
string(REPLACE "${PACKAGE_QUEUES}" "
secrets:                     # made at a start without visitors if absent
  ticket_keys: /var/lib/tellerline/ticket.keys
  api_keys: /var/lib/tellerline/api.keys
  pass_keys: /var/lib/tellerline/pass.keys
  admin_token: /var/lib/tellerline-control/admin.token
  token_key: /var/lib/tellerline-control/token.key
${PACKAGE_QUEUES_OUT}" PACKAGE_CONFIG "${PACKAGE_CONFIG}")
file(CONFIGURE OUTPUT ${PACKAGE_FOLDER}/tellerline.yaml CONTENT "${PACKAGE_CONFIG}" @ONLY NEWLINE_STYLE LF)

# ---- documents in Debian's form ----

string(TIMESTAMP PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if that is set
set(PACKAGE_VERSION ${PROJECT_VERSION}-${TELLERLINE_PACKAGE_REVISION})
file(CONFIGURE OUTPUT ${PACKAGE_FOLDER}/changelog.Debian NEWLINE_STYLE LF @ONLY CONTENT
"tellerline (@PACKAGE_VERSION@) unstable; urgency=medium

  * Tellerline @PROJECT_VERSION@: what is new is in changelog.gz.

 -- @TELLERLINE_PACKAGE_MAINTAINER@  @PACKAGE_DATE@
")
set(PACKAGE_GENERATED ${PACKAGE_FOLDER}/changelog.Debian.gz ${PACKAGE_FOLDER}/changelog.gz)
add_custom_command(OUTPUT ${PACKAGE_GENERATED}
    COMMAND gzip -9nc ${PACKAGE_FOLDER}/changelog.Debian > ${PACKAGE_FOLDER}/changelog.Debian.gz
    COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${PACKAGE_FOLDER}/changelog.gz
    DEPENDS ${PACKAGE_FOLDER}/changelog.Debian CHANGELOG.md VERBATIM)

# package_manual(PROGRAM SECTION DESCRIPTION): what --help and --version say, as a manual page. That of the command line
# is made by itself (command_line.cmake).
function(package_manual program section description)
    set(page ${PACKAGE_FOLDER}/${program}.${section})
    add_custom_command(OUTPUT ${page}.gz
        COMMAND help2man --no-info --section=${section} --name=${description} --output=${page} $<TARGET_FILE:${program}>
        COMMAND gzip -9nf ${page}
        DEPENDS ${program} VERBATIM)
    install(FILES ${page}.gz DESTINATION share/man/man${section})
    set(PACKAGE_GENERATED ${PACKAGE_GENERATED} ${page}.gz PARENT_SCOPE)
endfunction()

package_manual(tellerline-worker 8 "serves the visitors of a virtual waiting room over HTTP")
package_manual(tellerline-dispatcher 8 "numbers the arrivals of a virtual waiting room")
package_manual(tellerline-admitter 8 "lets the next in from a virtual waiting room")
package_manual(tellerline-expirer 8 "ends what is overdue in a virtual waiting room")
package_manual(tellerline-notifier 8 "tells other systems what happens in a virtual waiting room")
package_manual(tellerline-archiver 8 "keeps what happened in a virtual waiting room in PostgreSQL")
add_custom_target(package_documents ALL DEPENDS ${PACKAGE_GENERATED})

# ---- what goes where ----

file(GLOB PACKAGE_UNIT_FILES CONFIGURE_DEPENDS deploy/systemd/*.service deploy/systemd/*.path
     deploy/systemd/*.target)
install(FILES ${PACKAGE_UNIT_FILES} DESTINATION ${PACKAGE_UNITS})
install(FILES deploy/systemd/tellerline-.service.d/hardening.conf DESTINATION ${PACKAGE_UNITS}/tellerline-.service.d)
install(FILES deploy/debian/sysusers.conf DESTINATION lib/sysusers.d RENAME tellerline.conf)
install(FILES ${PACKAGE_FOLDER}/tellerline.yaml DESTINATION /etc/tellerline)
install(FILES deploy/debian/default DESTINATION /etc/default RENAME tellerline)
install(FILES README.md README.ko.md deploy/debian/copyright ${PACKAGE_FOLDER}/changelog.Debian.gz
        ${PACKAGE_FOLDER}/changelog.gz DESTINATION ${PACKAGE_DOC})
install(DIRECTORY docs DESTINATION ${PACKAGE_DOC})
get_target_property(PACKAGE_PAGE_VIEW tl_worker_page TELLERLINE_VIEW)
install(FILES ${PACKAGE_PAGE_VIEW}/generated/tellerline.js docs/integrators/tellerline.d.ts
        DESTINATION share/tellerline/web)
install(FILES deploy/monitoring/alerts.yml deploy/monitoring/rules.yml deploy/monitoring/dashboard.json
        DESTINATION share/tellerline/monitoring)
install(PROGRAMS deploy/redis/make-users DESTINATION share/tellerline/redis)
install(FILES deploy/redis/users.acl DESTINATION share/tellerline/redis)
install(FILES conf/reference.yaml DESTINATION ${PACKAGE_DOC})
install(DIRECTORY conf/examples/ deploy/gateways DESTINATION ${PACKAGE_DOC}/examples)

# ---- the package ----

file(WRITE ${PACKAGE_FOLDER}/conffiles "/etc/default/tellerline\n/etc/tellerline/tellerline.yaml\n")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tellerline)
set(CPACK_PACKAGE_CONTACT "${TELLERLINE_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON) # for what is not below /usr
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_times.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${TELLERLINE_PACKAGE_REVISION})
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# systemd-sysusers makes the users; the maintainer scripts need the rest of it only where it runs. The certificates are
# for challenge services and rediss://.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-sysusers, init-system-helpers (>= 1.51), ca-certificates, tzdata")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "redis-server (>= 5:7.0) | valkey-server")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "self-hosted virtual waiting room")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"When more people want in than a web shop can serve, Tellerline gives each a
numbered place, shows them honestly where they stand, and lets them in, first
come first served, exactly as fast as the shop can take them.

This package has its programs (worker, dispatcher, admitter, expirer,
notifier, archiver), which share nothing but a Redis or Valkey, the operator's
command tellerline, and systemd services for all of them.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PACKAGE_FOLDER}/conffiles ${CMAKE_SOURCE_DIR}/deploy/debian/postinst
    ${CMAKE_SOURCE_DIR}/deploy/debian/prerm ${CMAKE_SOURCE_DIR}/deploy/debian/postrm)
include(CPack)
