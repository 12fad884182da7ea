// The compiled part of Boost.JSON, so that no library of it must be linked.
#include <boost/json/src.hpp>
