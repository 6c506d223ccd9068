// Whether ids name rows of a table: embed(), embed_backward() and who must know before it calls them ask the same.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headlight::ops {

// Throws std::invalid_argument unless there are `count` ids, one for each row of `rows_name`, each in [0, table_rows).
void check_embedding_ids(std::string_view operation, std::string_view rows_name, std::span<const std::int64_t> ids,
                         std::size_t table, std::int64_t count, std::int64_t table_rows);

}  // namespace headlight::ops
