# One unmodified source tree of NCCL, its host code compiled with g++ against the simulated CUDA beside this file:
#   make -f tools/simgpu/nccl.mk NCCL=TREE OUT=DIR     into DIR/VERSION, which target `where` names
# python3 is for NCCL's own generators.

NCCL ?= $(error NCCL=TREE is not said)
OUT  ?= $(error OUT=DIR is not said)
CC   ?= gcc
CXX  ?= g++
S    := $(abspath $(NCCL))
OWN  := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
include $(S)/makefiles/version.mk
O    := $(abspath $(OUT))/$(NCCL_MAJOR).$(NCCL_MINOR).$(NCCL_PATCH)
# Up to 2.8 the code of a version has one digit for the minor number.
CODE := $(shell printf $(if $(filter 4 5 6 7 8,$(NCCL_MINOR)),"%d%d%02d","%d%02d%02d") $(NCCL_MAJOR) $(NCCL_MINOR) $(NCCL_PATCH))
# Up to 2.9 NCCL must find its devices in /sys.
SYSFS := $(if $(filter 4 5 6 7 8 9,$(NCCL_MINOR)),$(O)/sysfs.o $(O)/settings.o)

# Every host source, whatever the release calls it. Device code, other programs and what needs real hardware stay out.
SRC := $(shell cd $(S)/src && find . -name '*.cc' ! -path './device/*' ! -path './collectives/device/*' ! -path './os/windows*' ! -path '*/gdaki/*' \
         ! -path './ras/client.cc' ! -path './param/ncclparam.cc' ! -name '*_stub.cc' ! -name 'enhcompat.cc' | sed 's|^\./||')
OBJ := $(SRC:%.cc=$(O)/obj/%.o)
# Which shape the kernels' arguments have: player/nccl.h has the numbers.
HAS   = $(shell grep -ls $1 $(S)/src/include/device.h $(S)/src/include/devcomm.h)
WORK := $(if $(call HAS,ncclDevWorkBatch),0,$(if $(call HAS,workOffset),1,$(if $(call HAS,workNext),2,3)))

CUDA_H   := $(wildcard $(OWN)include/*.h $(OWN)include/cuda/* $(OWN)cuda/*.h)
PLAYER_H := $(wildcard $(OWN)player/*.h)
NCCL_INC := -I$(S)/src -I$(O)/include -I$(S)/src/include -I$(S)/src/include/plugin -I$(S)/src/transport/net_ib/gdaki/doca-gpunetio/include
NCCL_DEF := -DCUDA_MAJOR=12 -DCUDA_MINOR=0 -DNCCL_OS_LINUX -DNCCL_GIN_PROXY_ENABLE=1 -DPROFAPI -DNVTX_DISABLE
NCCL_CXX := $(CXX) -std=c++17 -fPIC -g1 -w $(NCCL_DEF) -I$(OWN)include $(NCCL_INC)
HIDDEN   := -fvisibility=hidden
# NCCL's own networks are yardsticks: they are compiled as NCCL compiles them.
NETS     := transport/net% misc/socket% misc/ib%
OPT       = $(if $(filter $(NETS),$1),-O3,-O1)
WARN     := -Wall -Wextra -Wshadow -Wno-unused-parameter
# NVTX_NO_IMPL: a header of NVTX in 2.17 and 2.18 is no C++20.
PLAYER   := $(CXX) -std=c++20 -fPIC -fvisibility=hidden -O2 -g1 -Wall -Wextra -Wno-unused-parameter -DWORK=$(WORK) $(NCCL_DEF) -DNVTX_NO_IMPL -I$(OWN)cuda -isystem $(OWN)include $(NCCL_INC:-I%=-isystem %)
CFLAGS   := -std=gnu11 -O2 -g1 -fPIC -fvisibility=hidden $(WARN) -I$(OWN)include

# NVIDIA's inspector, a profiler that releases bring from 2.28 on; from 2.30 on it writes what it does today.
INSPECT  := $(if $(filter 4 5 6 7 8 9 1% 20 21 22 23 24 25 26 27 28 29,$(NCCL_MINOR)),,$(wildcard $(S)/plugins/profiler/inspector))

all: $(O)/libnccl.so.2 $(O)/libnvidia-ml.so.1 $(O)/driver $(if $(INSPECT),$(O)/libnccl-profiler-inspector.so)
nets: $(O)/libnccl-net-socket.so $(O)/libnccl-net-ib.so

where:
	@echo $(O)

$(O)/include/nccl.h: $(S)/src/nccl.h.in
	@mkdir -p $(O)/include
	@sed -e 's/$${nccl:Major}/$(NCCL_MAJOR)/g' -e 's/$${nccl:Minor}/$(NCCL_MINOR)/g' -e 's/$${nccl:Patch}/$(NCCL_PATCH)/g' \
	  -e 's/$${nccl:Suffix}/$(NCCL_SUFFIX)/g' -e 's/$${nccl:Version}/$(CODE)/g' $< >$@
	@[ ! -f $(S)/src/misc/generate_git_version.py ] || (cd $(S)/src && python3 ./misc/generate_git_version.py $(O)/include/nccl_git_version.h)

$(O)/obj/%.o: $(S)/src/%.cc $(O)/include/nccl.h
	@mkdir -p $(@D)
	@echo "  $(notdir $(O)): $*.cc"; $(NCCL_CXX) $(HIDDEN) $(call OPT,$*) -c $< -o $@

# The host tables that NCCL generates: names and numbers of kernels. Its device sources come with them, and are not compiled.
$(O)/tables.o: $(wildcard $(S)/src/device/generate.py $(S)/src/device/symmetric/generate.py) $(O)/include/nccl.h
	@rm -rf $(O)/tables $(O)/tables.sym && mkdir -p $(O)/tables $(O)/tables.sym && touch $(O)/tables/none.cc
	@[ ! -f $(S)/src/device/generate.py ] || (cd $(S)/src/device && python3 ./generate.py $(O)/tables >/dev/null)
	@[ ! -f $(S)/src/device/symmetric/generate.py ] || (cd $(S)/src/device && python3 ./symmetric/generate.py $(O)/tables.sym >/dev/null)
	@for f in $(O)/tables/*.cc $(O)/tables.sym/*.cc; do [ ! -f $$f ] || $(NCCL_CXX) $(HIDDEN) -O1 -c $$f -o $(O)/tables/$$(basename $$f).o || exit 1; done
	@ld -r $(O)/tables/*.o -o $@

$(O)/player.o: $(OWN)player/player.cc $(PLAYER_H) $(CUDA_H) $(O)/include/nccl.h
	$(PLAYER) -c $< -o $@

$(O)/libsimcuda.so: $(filter-out %/nvml.c %/sysfs.c,$(wildcard $(OWN)cuda/*.c)) $(CUDA_H)
	@mkdir -p $(O)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libsimcuda.so -Wl,-z,defs -o $@ $(filter %.c,$^) -lpthread
	ln -sf libsimcuda.so $(O)/libcuda.so

$(O)/libnvidia-ml.so.1: $(OWN)cuda/nvml.c $(OWN)cuda/settings.c $(CUDA_H)
	@mkdir -p $(O)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -o $@ $(filter %.c,$^)

$(O)/sysfs.o $(O)/settings.o: $(O)/%.o: $(OWN)cuda/%.c $(CUDA_H)
	@mkdir -p $(O)
	$(CC) $(CFLAGS) -c -o $@ $<

# What is left undefined (kernels, GPU-initiated networking) becomes functions that say their names and end the process.
$(O)/unplayed.c: $(OBJ) $(O)/tables.o $(O)/player.o
	@ld -r $^ -o $(O)/all.o && nm -u $(O)/all.o | awk -f $(OWN)unplayed.awk >$@; rm -f $(O)/all.o

$(O)/libnccl.so.2: $(OBJ) $(O)/tables.o $(O)/player.o $(O)/unplayed.c $(O)/libsimcuda.so $(SYSFS)
	@$(CC) -std=gnu11 -fPIC -O1 -c $(O)/unplayed.c -o $(O)/unplayed.o
	@echo "  $(notdir $(O)): $(@F)"; $(CXX) -shared -o $@ $(OBJ) $(O)/tables.o $(O)/player.o $(O)/unplayed.o $(SYSFS) $(if $(SYSFS),-Wl$(COMMA)--wrap=realpath$(COMMA)--wrap=fopen$(COMMA)--wrap=open) -Wl,-soname,libnccl.so.2 -Wl,-z,defs \
	  $(addprefix -Wl$(COMMA)--version-script=,$(wildcard $(S)/src/libnccl.map)) '-Wl,-rpath,$$ORIGIN' -L$(O) -lsimcuda -lpthread -lrt -ldl
	ln -sf libnccl.so.2 $(O)/libnccl.so
COMMA := ,

# NCCL's own networks as plugins: the file that has the table is compiled once more, under the name and with the visibility of a plugin's.
NET_TABLE = ncclNetPlugin_$(shell grep -rhoE 'typedef +ncclNet_v[0-9]+_t +ncclNet_t' $(S)/src/include | grep -oE 'v[0-9]+' | head -n 1)
NET_FILE  = $(patsubst $(S)/src/%.cc,%,$(shell grep -lE '^ncclNet_t +$1 *=' $(filter-out %_stub.cc,$(wildcard $(S)/src/transport/*.cc $(S)/src/transport/net_ib/*.cc))))
define NET
$(O)/libnccl-net-$1.so: $(O)/libnccl.so.2
	@mkdir -p $(O)/nets
	@$(NCCL_CXX) -O3 -fno-semantic-interposition -D$2=$$(NET_TABLE) -c $(S)/src/$$(call NET_FILE,$2).cc -o $(O)/nets/$1.o
	@echo "  $(notdir $(O)): $$(@F)"; $(CXX) -shared -Wl,-Bsymbolic -o $$@ $(O)/nets/$1.o $$(filter-out %/$$(call NET_FILE,$2).o,$(OBJ)) $(O)/tables.o $(O)/player.o $(O)/unplayed.o -Wl,--defsym,$2=$$(NET_TABLE) \
	  '-Wl,-rpath,$$$$ORIGIN' -L$(O) -lsimcuda -lpthread -lrt -ldl
endef
$(eval $(call NET,socket,ncclNetSocket))
$(eval $(call NET,ib,ncclNetIb))

# get_git_version_info is what its own Makefile writes.
$(O)/libnccl-profiler-inspector.so: $(wildcard $(INSPECT)/*.cc $(INSPECT)/*.h $(INSPECT)/nccl/*.h) $(O)/libsimcuda.so
	@echo 'extern "C" const char* get_git_version_info() { return "$(notdir $(O))"; }' >$(O)/inspector.cc
	@echo "  $(notdir $(O)): $(@F)"; $(CXX) -std=c++17 -fPIC -w -O1 -shared -Wl,-Bsymbolic -o $@ -I$(INSPECT) -I$(INSPECT)/nccl -I$(OWN)include \
	  $(filter-out %/version.cc,$(filter %.cc,$^)) $(O)/inspector.cc '-Wl,-rpath,$$ORIGIN' -L$(O) -lsimcuda -ldl -lpthread

$(O)/driver: $(wildcard $(OWN)driver/*.c) $(OWN)driver/driver.h $(O)/libnccl.so.2
	$(CC) $(filter-out -fPIC,$(CFLAGS)) -isystem $(O)/include -o $@ $(filter %.c,$^) '-Wl,-rpath,$$ORIGIN' -L$(O) -lnccl -lsimcuda -lpthread

.PHONY: all nets where
