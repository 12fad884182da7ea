// The compiled parts of Boost.URL and Boost.JSON, so no library of them must be linked.
#include <boost/json/src.hpp>
#include <boost/url/src.hpp>
