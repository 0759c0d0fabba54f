/* The driver's functions that the shim does not wrap, so that programs can be linked against it: the linker does
 * not look into a library's dependencies. TRAMPOLINES is a file of lines `trampoline NAME`, made by the Makefile
 * from exports.txt.
 *
 * Each function jumps to the address in its slot. At first that is a resolver, which looks the function up in the
 * real library by trampoline_resolve(), keeps all registers in which arguments may be, and goes on with it. */

#if defined(__x86_64__)

    .macro function_start
    endbr64
    .endm

    .macro jump_to_slot name
    jmp *slot_\name(%rip)
    .endm

    .macro call_resolver number
    endbr64
    pushq $\number
    jmp resolve_any
    .endm

#elif defined(__aarch64__)

    .macro function_start
    hint #34 /* bti c */
    .endm

    .macro jump_to_slot name
    adrp x16, slot_\name
    ldr x16, [x16, #:lo12:slot_\name]
    br x16
    .endm

    .macro call_resolver number
    hint #36 /* bti j: the slot's br comes here */
    movz w17, #\number
    b resolve_any
    .endm

#endif

    .altmacro
    .set number, 0

    .macro numbered_resolver number
    call_resolver \number
    .endm

    .macro trampoline name
    .text
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    function_start
    jump_to_slot \name
    .size \name, . - \name
resolve_\name:
    numbered_resolver %number
    .set number, number + 1
    .data
    .p2align 3
slot_\name:
    .quad resolve_\name
    .section .rodata.str1.1, "aMS", %progbits, 1
name_\name:
    .asciz "\name"
    .section .data.rel.ro, "aw"
    .p2align 3
    .quad name_\name
    .endm

    .section .data.rel.ro, "aw"
    .p2align 3
    .globl trampoline_names
    .hidden trampoline_names
    .type trampoline_names, %object
trampoline_names:
    .data
    .p2align 3
    .globl trampoline_slots
    .hidden trampoline_slots
    .type trampoline_slots, %object
trampoline_slots:

#include TRAMPOLINES

/* With the function's number on the stack (x86-64) or in w17 (AArch64). */
    .text
    .type resolve_any, %function
    .p2align 4
resolve_any:
    .cfi_startproc
#if defined(__x86_64__)
    .cfi_def_cfa_offset 16 /* of the number, under the return address */
    pushq %rbp
    .cfi_def_cfa_offset 24
    .cfi_offset %rbp, -24
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax /* vector registers in use, of a function with `...` */
    pushq %r10
    subq $512, %rsp
    andq $-16, %rsp
    fxsave64 (%rsp)
    movq 8(%rbp), %rdi
    call trampoline_resolve
    movq %rax, 8(%rbp)
    fxrstor64 (%rsp)
    movq -64(%rbp), %r10
    movq -56(%rbp), %rax
    movq -48(%rbp), %r9
    movq -40(%rbp), %r8
    movq -32(%rbp), %rcx
    movq -24(%rbp), %rdx
    movq -16(%rbp), %rsi
    movq -8(%rbp), %rdi
    leave
    .cfi_def_cfa %rsp, 16
    popq %r11
    .cfi_def_cfa_offset 8
    jmp *%r11
#elif defined(__aarch64__)
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl trampoline_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    br x16
#endif
    .cfi_endproc
    .size resolve_any, . - resolve_any

    .section .note.GNU-stack, "", %progbits
