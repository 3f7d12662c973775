/* The entry of a program whose system's own start files have no marks for Intel's control-flow enforcement (Debian's have
   none, and ld then marks no program). With the two below, all that is jumped to from outside begins with endbr64. The
   start files use the shadow stack as it is meant, so the program may have both marks. */

/* The loader jumps here; where it goes on is a direct jump, which needs no mark. */
__asm__(
    ".text\n"
    ".globl efimd_marked_start\n"
    ".type efimd_marked_start, @function\n"
    "efimd_marked_start:\n"
    "  endbr64\n"
    "  jmp _start\n"
    ".size efimd_marked_start, .-efimd_marked_start\n");

/* In place of the start files' _init and _fini, which are there for profilers alone. */
void efimd_marked_nothing(void);
void efimd_marked_nothing(void) {}
