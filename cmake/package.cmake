# `cpack -G DEB` in a build folder: a Debian package of what `cmake --install` installs.
include(GNUInstallDirs)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME efimd)
set(CPACK_PACKAGE_CONTACT "efimd <efimd@localhost>")
set(CPACK_PACKAGE_VENDOR efimd)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inline code completions from a model on this machine")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"One daemon per user serves every editor over the Language Server Protocol;
each keystroke costs the evaluation of a few tokens, and no text leaves the
machine. A small model is included.")

# Debian demands these of every package.
set(doc ${CMAKE_BINARY_DIR}/package)
file(MAKE_DIRECTORY ${doc})
configure_file(${CMAKE_SOURCE_DIR}/LICENSE ${doc}/copyright COPYONLY)
file(WRITE ${doc}/changelog
"efimd (${PROJECT_VERSION}) unstable; urgency=medium

  * See the project's own history.

 -- efimd <efimd@localhost>  Thu, 01 Jan 2026 00:00:00 +0000
")
execute_process(COMMAND ${EFIMD_GZIP} -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${doc}/overrides "# The project has no address of its own yet.\nefimd: bogus-mail-host *\nefimd: bogus-mail-host-in-debian-changelog *\n")
install(FILES ${doc}/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME efimd)
install(FILES ${doc}/copyright ${doc}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/efimd)

# VS Code's extension is made with npm, which a build of efimd does not need: by a target of its own, and by an installation that finds
# none or an old one. Without npm it is left out.
set(vsix ${CMAKE_BINARY_DIR}/efimd.vsix)
set(make_vsix ${CMAKE_SOURCE_DIR}/scripts/vsix ${CMAKE_BINARY_DIR}/vscode/extension ${vsix})
add_custom_target(vsix COMMAND ${make_vsix} VERBATIM)
install(CODE "set(vsix \"${vsix}\")\nset(make_vsix \"${make_vsix}\")\nset(extension \"${CMAKE_SOURCE_DIR}/editors/vscode\")")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_vsix.cmake)
install(FILES ${vsix} DESTINATION ${CMAKE_INSTALL_DATADIR}/efimd OPTIONAL)
include(CPack)
