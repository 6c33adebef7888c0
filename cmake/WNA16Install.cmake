# Installs libraries, tools and headers, and exports them as the package WNA16:
# headers under include/wna16, targets in the namespace WNA16.

include(CMakePackageConfigHelpers)

set(WNA16_INSTALL_CMAKEDIR "${CMAKE_INSTALL_LIBDIR}/cmake/WNA16")
get_property(libraries GLOBAL PROPERTY WNA16_INSTALL_TARGETS)
get_property(tools GLOBAL PROPERTY WNA16_INSTALL_TOOLS)

# Tools find the project's shared libraries beside them, and MLIR where it was
# at link time.
set_target_properties(${libraries} ${tools} PROPERTIES
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}"
  INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS ${libraries} ${tools} EXPORT WNA16Targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT WNA16Targets NAMESPACE WNA16::
  DESTINATION "${WNA16_INSTALL_CMAKEDIR}")

set(headers Layout Runtime Checkpoint Module)
if(WNA16_ENABLE_MLIR)
  list(APPEND headers Dialect Backend Transforms)
endif()
foreach(folder ${headers})
  install(DIRECTORY "${WNA16_SOURCE_DIR}/include/${folder}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/wna16"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td")
endforeach()
if(WNA16_ENABLE_MLIR)
  # What TableGen made of the .td files.
  install(DIRECTORY "${WNA16_BINARY_DIR}/include/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/wna16"
    FILES_MATCHING PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
endif()

# The libraries that include MLIR's headers: the package gives them the include
# folders of the MLIR that it finds.
set(WNA16_MLIR_LIBRARIES)
foreach(library ${libraries})
  get_target_property(linked ${library} LINK_LIBRARIES)
  if("MLIR" IN_LIST linked)
    list(APPEND WNA16_MLIR_LIBRARIES WNA16::${library})
  endif()
endforeach()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/WNA16Config.cmake.in"
  "${WNA16_BINARY_DIR}/WNA16Config.cmake"
  INSTALL_DESTINATION "${WNA16_INSTALL_CMAKEDIR}")
write_basic_package_version_file(
  "${WNA16_BINARY_DIR}/WNA16ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${WNA16_BINARY_DIR}/WNA16Config.cmake"
  "${WNA16_BINARY_DIR}/WNA16ConfigVersion.cmake"
  DESTINATION "${WNA16_INSTALL_CMAKEDIR}")
install(FILES "${WNA16_SOURCE_DIR}/LICENSE"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
