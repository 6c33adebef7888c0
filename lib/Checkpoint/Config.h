//===- Config.h - config.json in all its spellings --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models name the same parameter differently, transformers 4 and 5 do, and
// some nest the language model's part. Keys are looked up here, and only here.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_CONFIG_H
#define WNA16_LIB_CHECKPOINT_CONFIG_H

#include "Format.h"

namespace wna16 {

/// The model's configuration. Lookups try the language model's part first,
/// then the whole.
class ModelConfig {
public:
  static Result<ModelConfig> open(const std::string &directory);

  const std::string &modelType() const { return type; }
  const std::string &file() const { return where; }
  /// Empty when the configuration does not say.
  std::optional<ScalarType> dtype() const { return element; }
  const Json &whole() const { return root; }

  template <typename T>
  Failure read(const Keys &keys, std::optional<T> &out) const {
    for (const Json *part : parts()) {
      if (Failure failure = readKey(*part, keys, where, out))
        return failure;
      if (out)
        break;
    }
    return ok();
  }

  /// As `read`, for keys that may hold one value for each layer.
  Failure readLayer(const Keys &keys, int64_t layer,
                    std::optional<int64_t> &out) const;
  /// The value of a key, of any type; null when there is none.
  const Json *find(const char *key) const;

private:
  std::vector<const Json *> parts() const;
  Failure readNames();

  Json root;
  std::string where;
  std::string nested; ///< key of the language model's part, or empty
  std::string type;
  std::optional<ScalarType> element;
};

/// Reads quantization_config, or the file beside config.json that holds it;
/// where both are there they must agree.
Result<Quantization> readQuantization(const std::string &directory,
                                      const ModelConfig &config);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_CONFIG_H
