// RUN: wna16-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a compute capability from 0 to 999, got -90}}
#a = #wna16.target<cuda, capability = -90>

// -----

// expected-error @+1 {{expected a compute capability from 0 to 999, got 9000}}
#a = #wna16.target<cuda, capability = 9000>

// -----

// expected-error @+1 {{expected no compute capability of a cpu target, got 90}}
#a = #wna16.target<cpu, capability = 90>

// -----

// expected-error @+1 {{expected no libraries of a xpu target, got 'flashinfer'}}
#a = #wna16.target<xpu, libraries = ["flashinfer"]>

// -----

// expected-error @+1 {{expected memory of 0 or more bytes, got -1}}
#a = #wna16.target<cuda, capability = 90, memory = -1>

// -----

// expected-error @+1 {{expected features of letters, digits, '.', '_' and '-', got 'avx2,+amx'}}
#a = #wna16.target<cpu, features = ["avx2,+amx"]>

// -----

// expected-error @+1 {{expected features of letters, digits, '.', '_' and '-', got ''}}
#a = #wna16.target<cpu, features = [""]>

// -----

// expected-error @+1 {{expected distinct libraries, got 'humming' twice}}
#a = #wna16.target<cuda, capability = 90, libraries = ["humming", "flashinfer", "humming"]>

// -----

// expected-error @below {{expected 'wna16.target' to be a #wna16.target, got "cuda:sm_90"}}
module attributes {wna16.target = "cuda:sm_90"} {
}

// -----

// expected-error @below {{expected 'wna16.target' on a module, got it on a function}}
func.func private @target() attributes {wna16.target = #wna16.target<cpu>}

// -----

// expected-error @below {{expected 'wna16.prepared_for' to be a #wna16.target, got 3 : i64}}
module attributes {wna16.prepared_for = 3} {
}

// -----

// expected-error @below {{expected 'wna16.checkpoint' to be a dictionary of strings, got {model = 4 : i64}}}
module attributes {wna16.checkpoint = {model = 4}} {
}

// -----

// expected-error @below {{expected an attribute of the dialect (wna16.target, wna16.prepared_for, wna16.checkpoint, wna16.share, wna16.prepare, wna16.experts, wna16.backends, wna16.workspace, wna16.extents, wna16.parameter, wna16.output, wna16.encoding, wna16.prepared, wna16.name), got 'wna16.paramter'}}
func.func private @typo(tensor<8xi32> {wna16.paramter = {pattern = "a"}})

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got "a"}}
func.func private @parameter(tensor<8xi32> {wna16.parameter = "a"})

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got {pattern = 3 : i64}}}
func.func private @pattern(tensor<8xi32> {wna16.parameter = {pattern = 3}})

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got {pattern = ""}}}
func.func private @empty(tensor<8xi32> {wna16.parameter = {pattern = ""}})

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got {concat = -1 : i64, pattern = "a"}}}
func.func private @concat(tensor<8xi32> {wna16.parameter = {pattern = "a", concat = -1}})

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got {axis = 1 : i64, pattern = "a"}}}
func.func private @other(tensor<8xi32> {wna16.parameter = {pattern = "a", axis = 1}})

// -----

// expected-error @below {{expected 'wna16.parameter' on an argument, got it on a result}}
func.func private @result() -> (tensor<8xi32> {wna16.parameter = {pattern = "a"}})

// -----

// expected-error @below {{expected 'wna16.prepared' to be a string that is not empty, got ""}}
func.func private @prepared(tensor<8xi32> {wna16.prepared = ""})

// -----

// expected-error @below {{expected 'wna16.name' to be a string that is not empty, got unit}}
func.func private @name() -> (tensor<8xi32> {wna16.name})

// -----

// expected-error @below {{expected 'wna16.name' on an argument or a result, got it on a function}}
func.func private @place() attributes {wna16.name = "forward"}

// -----

// expected-error @below {{expected 'wna16.output' to be a unit attribute, got true}}
func.func private @output(memref<8xi32> {wna16.output = true})

// -----

// expected-error @below {{expected 'wna16.encoding' to be a string that is not empty, got 1 : i64}}
func.func private @encoding(memref<8xi32> {wna16.encoding = 1})

// -----

// expected-error @below {{expected 'wna16.prepare' to be a string that is not empty, got 1 : i64}}
func.func private @prepare() attributes {wna16.prepare = 1}

// -----

// expected-error @below {{expected 'wna16.experts' to be a positive integer, got 0 : i64}}
func.func private @experts() attributes {wna16.experts = 0}

// -----

// expected-error @below {{expected 'wna16.backends' to be an array of strings, got ["cpu", 1]}}
func.func private @backends() attributes {wna16.backends = ["cpu", 1]}

// -----

// expected-error @below {{expected 'wna16.workspace' to be a symbol, got "workspace_size"}}
func.func private @workspace() attributes {wna16.workspace = "workspace_size"}

// -----

// expected-error @below {{expected 'wna16.extents' to be [[argument, axis], ...], got [[0, -1]]}}
func.func private @extents(index) -> index attributes {wna16.extents = [[0, -1]]}

// -----

func.func @operation(%x: tensor<8xi32>) {
  // expected-error @below {{expected 'wna16.name' on an argument or a result, got it on 'tensor.cast'}}
  %0 = tensor.cast %x {wna16.name = "x"} : tensor<8xi32> to tensor<?xi32>
  return
}

// -----

// expected-error @below {{expected 'wna16.share' to be {rank = RANK, size = RANKS}, got {rank = 4 : i64, size = 4 : i64}}}
module attributes {wna16.share = {rank = 4, size = 4}} {}

// -----

// expected-error @below {{expected 'wna16.share' to be {rank = RANK, size = RANKS}, got {rank = 0 : i64}}}
module attributes {wna16.share = {rank = 0}} {}

// -----

// expected-error @below {{expected 'wna16.parameter' to be {pattern = "..."}, or with concat = AXIS, got {pattern = "a.{expert"}}}
func.func private @malformed(tensor<8xi32> {wna16.parameter = {pattern = "a.{expert"}})
