// The head of every shader that adds over its threads. SUBGROUPS is set for devices that have such
// operations.
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
