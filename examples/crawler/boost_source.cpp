// The compiled parts of Boost.URL and Boost.JSON, so that no library of them need be linked.
#include <boost/json/src.hpp>
#include <boost/url/src.hpp>
