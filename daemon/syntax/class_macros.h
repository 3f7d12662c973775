#pragma once

#include <string>
#include <string_view>

namespace efimd::syntax {

/// C or C++ without the macros between "class" and the name of a class that is defined, such as
/// "class SHOP_API(core) Store final : Base {". Compilers are given nothing or an attribute there. A
/// grammar takes the macro for the name, and the class for a function with a body. So it does if a macro
/// stands alone on the line before it, such as QT_BEGIN_NAMESPACE: that is left out, too.
std::string without_class_macros(std::string_view text);

}  // namespace efimd::syntax
