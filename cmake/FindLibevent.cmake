# Finds libevent and defines the targets libevent::core and libevent::pthreads. It uses libevent's own package
# configuration if that is installed, otherwise pkg-config, otherwise a search. Debian's package has no CMake
# configuration.

find_package(Libevent CONFIG QUIET COMPONENTS core pthreads)
if(TARGET libevent::core AND TARGET libevent::pthreads)
  set(Libevent_FOUND TRUE)
  return()
endif()

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Libevent QUIET libevent_core)
endif()
find_path(Libevent_INCLUDE_DIR event2/event.h HINTS ${PC_Libevent_INCLUDE_DIRS})
find_library(Libevent_CORE_LIBRARY event_core HINTS ${PC_Libevent_LIBRARY_DIRS})
find_library(Libevent_PTHREADS_LIBRARY event_pthreads HINTS ${PC_Libevent_LIBRARY_DIRS})
mark_as_advanced(Libevent_INCLUDE_DIR Libevent_CORE_LIBRARY Libevent_PTHREADS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libevent
  REQUIRED_VARS Libevent_CORE_LIBRARY Libevent_PTHREADS_LIBRARY Libevent_INCLUDE_DIR
  VERSION_VAR PC_Libevent_VERSION)

if(Libevent_FOUND)
  foreach(component IN ITEMS core pthreads)
    if(NOT TARGET libevent::${component})
      string(TOUPPER ${component} COMPONENT)
      add_library(libevent::${component} UNKNOWN IMPORTED)
      set_target_properties(libevent::${component} PROPERTIES
        IMPORTED_LOCATION "${Libevent_${COMPONENT}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${Libevent_INCLUDE_DIR}")
    endif()
  endforeach()
  set_target_properties(libevent::pthreads PROPERTIES INTERFACE_LINK_LIBRARIES libevent::core)
endif()
