// Two functions of glibc 2.35 and 2.36 that gcc's static libraries call, so that a program built on
// Debian 12 runs where glibc is 2.34. Called by the unwinder for each frame of an exception, and by
// std::random_device; any thread.
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// What is looked for, and where it was found.
struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int visit(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  uintptr_t start = UINTPTR_MAX, end = 0, eh_frame = 0;
  int inside = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) eh_frame = begin;
    if (header->p_type != PT_LOAD) continue;
    if (begin < start) start = begin;
    if (begin + header->p_memsz > end) end = begin + header->p_memsz;
    inside |= search->address - begin < header->p_memsz;
  }
  if (!inside || eh_frame == 0) return 0;
  *search->found = (struct dl_find_object){
      .dlfo_map_start = (void*)start,
      .dlfo_map_end = (void*)end,
      .dlfo_eh_frame = (void*)eh_frame,
  };
  return 1;
}

// 0 and the object that `address` is in, or -1. Of the result the unwinder reads dlfo_eh_frame.
__attribute__((visibility("hidden"))) int _dl_find_object(void* address,
                                                          struct dl_find_object* found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t number = 0;
  // Short only where a signal comes before the kernel has gathered enough.
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
