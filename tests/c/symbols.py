"""Every function that the header declares is in the library, and none of version 1 has gone."""
import re
import subprocess
import sys

header, library, listed = sys.argv[1:]
declared = set(re.findall(r"^ULX_API [^;]*?\b(ulx_\w+)\(", open(header).read(), re.M))
flags = ["-D"] if ".so" in library else []
found = subprocess.run(["nm", "-g", "--defined-only", *flags, library], capture_output=True, text=True, check=True).stdout
defined = set(re.findall(r" T (ulx_\w+)", found))
kept = set(open(listed).read().split())
versioned = set(re.findall(r" T (ulx_\w+)@@ULEXITE_C_1\b", found)) if ".so" in library else defined
for words, names in (("without a version", defined - versioned),
                     ("declared and not defined", declared - defined), ("defined and not declared", defined - declared),
                     ("of version 1 and not declared", kept - declared), ("not in symbols.txt", declared - kept)):
    if names:
        sys.exit(f"{words}: {', '.join(sorted(names))}")
print(f"{len(declared)} functions")
