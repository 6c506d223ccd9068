# The engine uses one word for one thing (lib/README.md, "Twelve words"): names and comments of lib/ and of the public headers have no other
# word for it. The models read other people's files, whose keys are named as they are there.
cmake_minimum_required(VERSION 3.25)

# What is not written, and what is said instead.
set(words
  "[Tt]ile by tile|TILE_BY_TILE" "block by block"
  "[Mm]icro-?[Kk]ernels?" "tile"
  "[Ss]trips?|[Ss]tripes?|[Ss]labs?" "panel, row block or key block"
  "(pool|worker) threads?|threads? (that|which) works?" "worker"
  "num_?heads|n_?heads|heads_count" "heads"
  "seq_?lens?|seqlens?|max_?len" "length"
  "hidden_size|d_model|embed_dim|n_embd" "width"
  "head_size|d_head|dim_head" "head_dim"
  "lse|logsumexp" "log_sum_exp"
  "[Mm]ini-?tiles?|sub-?tiles?" "tile"
  "[Ss]imd lanes?|thread lanes?" "lane")

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/lib/*.h ${SOURCE}/lib/*.cc ${SOURCE}/include/*.h)
list(FILTER files EXCLUDE REGEX "/models/")
foreach(file IN LISTS files)
  file(READ ${SOURCE}/${file} text)
  set(pairs ${words})
  while(pairs)
    list(POP_FRONT pairs refused instead)
    if(text MATCHES "(^|[^A-Za-z0-9_])(${refused})([^A-Za-z0-9_]|$)")
      message(SEND_ERROR "${file} says \"${CMAKE_MATCH_2}\", expected ${instead}")
    endif()
  endwhile()
endforeach()
list(LENGTH files count)
if(count LESS 100)
  message(SEND_ERROR "looked at ${count} files, expected the engine's")
endif()
