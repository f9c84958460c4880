# Reads what `nm -u` prints, and writes C: a function for each name of NCCL's that says the name and ends the process.
BEGIN {
  print "#include <stdio.h>\n#include <stdlib.h>"
  print "static void unplayed(const char* name) {\n  fprintf(stderr, \"simgpu: %s is not played\\n\", name);\n  abort();\n}"
}
$2 ~ /^(_Z(N|L)?[0-9]*nccl|nccl)/ {
  n++
  printf "__attribute__((visibility(\"hidden\"))) void unplayed%d(void) __asm__(\"%s\");\nvoid unplayed%d(void) { unplayed(\"%s\"); }\n", n, $2, n, $2
}
