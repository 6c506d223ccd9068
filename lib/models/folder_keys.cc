#include "models/folder_keys.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// Gathered from published folders, from the attributes that Transformers 4 and 5 save of configurations and tokenizers,
// and from what the modules of sentence-transformers 2 to 6 save. Keys of config.json that belong to one family stand
// beside what reads it.
// clang-format off
constexpr FolderKey kKeys[] = {
    {"config.json", "model_type", Treatment::read, "", "one of the families in the table under Files; `bert` where the key is missing, as in the oldest files"},
    {"config.json", "tokenizer_class", Treatment::read, "", "where tokenizer_config.json names none"},
    {"config.json", "is_decoder", Treatment::refused, "false", ""},
    {"config.json", "is_causal", Treatment::refused, "false", ""},
    {"config.json", "add_cross_attention", Treatment::refused, "false", ""},
    {"config.json", "cross_attention_hidden_size", Treatment::refused, "", ""},
    {"config.json", "is_encoder_decoder", Treatment::refused, "false", ""},
    {"config.json", "pruned_heads", Treatment::refused, "{}|[]", "heads that are missing from the weights"},
    {"config.json", "per_layer_config", Treatment::refused, "{}", "other values of keys in some layers"},
    {"config.json", "auto_map", Treatment::refused, "{}|[]", "the model is code of its own"},
    {"config.json", "quantization_config", Treatment::refused, "{}", "the weights are in a format of their own"},
    {"config.json", "compression_config", Treatment::refused, "{}", ""},
    {"config.json", "transformers_weights", Treatment::refused, "'model.safetensors'", "weights by another name"},
    {"config.json", "attention_probs_dropout_prob", Treatment::no_effect, "", "of training, as the next two"},
    {"config.json", "attention_dropout", Treatment::no_effect, "", ""},
    {"config.json", "hidden_dropout_prob", Treatment::no_effect, "", ""},
    {"config.json", "architectures", Treatment::read, "", "of scores: a name that ends in `ForSequenceClassification`; all other heads are left aside"},
    {"config.json", "initializer_range", Treatment::no_effect, "", ""},
    {"config.json", "initializer_factor", Treatment::no_effect, "", ""},
    {"config.json", "pad_token_id", Treatment::no_effect, "", "texts are not padded"},
    {"config.json", "use_cache", Treatment::no_effect, "", ""},
    {"config.json", "classifier_dropout", Treatment::no_effect, "", ""},
    {"config.json", "classifier_activation", Treatment::no_effect, "", ""},
    {"config.json", "classifier_pooling", Treatment::no_effect, "", ""},
    {"config.json", "gradient_checkpointing", Treatment::no_effect, "", ""},
    {"config.json", "torch_dtype", Treatment::no_effect, "", "products are in the precision that is asked for"},
    {"config.json", "dtype", Treatment::no_effect, "", "as torch_dtype"},
    {"config.json", "transformers_version", Treatment::no_effect, "", ""},
    {"config.json", "_name_or_path", Treatment::no_effect, "", ""},
    {"config.json", "name_or_path", Treatment::no_effect, "", ""},
    {"config.json", "_commit_hash", Treatment::no_effect, "", ""},
    {"config.json", "_attn_implementation", Treatment::no_effect, "", ""},
    {"config.json", "_attn_implementation_autoset", Treatment::no_effect, "", ""},
    {"config.json", "attn_implementation", Treatment::no_effect, "", ""},
    {"config.json", "_num_labels", Treatment::no_effect, "", ""},
    {"config.json", "id2label", Treatment::read, "", "of scores: how many a pair has"},
    {"config.json", "label2id", Treatment::no_effect, "", ""},
    {"config.json", "num_labels", Treatment::read, "", "the same, where id2label is missing"},
    {"config.json", "problem_type", Treatment::no_effect, "", ""},
    {"config.json", "finetuning_task", Treatment::no_effect, "", ""},
    {"config.json", "task_specific_params", Treatment::no_effect, "", ""},
    {"config.json", "sentence_transformers", Treatment::read, "", "of scores: `activation_fn`, a function as 2_Dense/config.json names it"},
    {"config.json", "sbert_ce_default_activation_function", Treatment::read, "", "the same in older folders"},
    {"config.json", "directionality", Treatment::no_effect, "", ""},
    {"config.json", "pooler_fc_size", Treatment::no_effect, "", "the pooler is left aside"},
    {"config.json", "pooler_num_attention_heads", Treatment::no_effect, "", ""},
    {"config.json", "pooler_num_fc_layers", Treatment::no_effect, "", ""},
    {"config.json", "pooler_size_per_head", Treatment::no_effect, "", ""},
    {"config.json", "pooler_type", Treatment::no_effect, "", ""},
    {"config.json", "output_attentions", Treatment::no_effect, "", ""},
    {"config.json", "output_hidden_states", Treatment::no_effect, "", ""},
    {"config.json", "output_past", Treatment::no_effect, "", ""},
    {"config.json", "return_dict", Treatment::no_effect, "", ""},
    {"config.json", "use_return_dict", Treatment::no_effect, "", ""},
    {"config.json", "torchscript", Treatment::no_effect, "", ""},
    {"config.json", "use_bfloat16", Treatment::no_effect, "", ""},
    {"config.json", "xla_device", Treatment::no_effect, "", ""},
    {"config.json", "tf_legacy_loss", Treatment::no_effect, "", ""},
    {"config.json", "chunk_size_feed_forward", Treatment::no_effect, "", "rows at a time"},
    {"config.json", "tie_word_embeddings", Treatment::no_effect, "", "of a task's head"},
    {"config.json", "tie_encoder_decoder", Treatment::no_effect, "", ""},
    {"config.json", "bos_token_id", Treatment::no_effect, "", ""},
    {"config.json", "eos_token_id", Treatment::no_effect, "", ""},
    {"config.json", "eos_token_ids", Treatment::no_effect, "", ""},
    {"config.json", "sep_token_id", Treatment::no_effect, "", ""},
    {"config.json", "cls_token_id", Treatment::no_effect, "", ""},
    {"config.json", "mask_token_id", Treatment::no_effect, "", ""},
    {"config.json", "unk_token_id", Treatment::no_effect, "", ""},
    {"config.json", "decoder_start_token_id", Treatment::no_effect, "", ""},
    {"config.json", "prefix", Treatment::no_effect, "", ""},
    {"config.json", "max_length", Treatment::no_effect, "", "of generation, as all to the end of this list"},
    {"config.json", "min_length", Treatment::no_effect, "", ""},
    {"config.json", "do_sample", Treatment::no_effect, "", ""},
    {"config.json", "early_stopping", Treatment::no_effect, "", ""},
    {"config.json", "num_beams", Treatment::no_effect, "", ""},
    {"config.json", "num_beam_groups", Treatment::no_effect, "", ""},
    {"config.json", "diversity_penalty", Treatment::no_effect, "", ""},
    {"config.json", "temperature", Treatment::no_effect, "", ""},
    {"config.json", "top_k", Treatment::no_effect, "", ""},
    {"config.json", "top_p", Treatment::no_effect, "", ""},
    {"config.json", "typical_p", Treatment::no_effect, "", ""},
    {"config.json", "repetition_penalty", Treatment::no_effect, "", ""},
    {"config.json", "length_penalty", Treatment::no_effect, "", ""},
    {"config.json", "no_repeat_ngram_size", Treatment::no_effect, "", ""},
    {"config.json", "encoder_no_repeat_ngram_size", Treatment::no_effect, "", ""},
    {"config.json", "bad_words_ids", Treatment::no_effect, "", ""},
    {"config.json", "num_return_sequences", Treatment::no_effect, "", ""},
    {"config.json", "output_scores", Treatment::no_effect, "", ""},
    {"config.json", "return_dict_in_generate", Treatment::no_effect, "", ""},
    {"config.json", "forced_bos_token_id", Treatment::no_effect, "", ""},
    {"config.json", "forced_eos_token_id", Treatment::no_effect, "", ""},
    {"config.json", "remove_invalid_values", Treatment::no_effect, "", ""},
    {"config.json", "exponential_decay_length_penalty", Treatment::no_effect, "", ""},
    {"config.json", "suppress_tokens", Treatment::no_effect, "", ""},
    {"config.json", "begin_suppress_tokens", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "tokenizer_class", Treatment::read, "", "of BERT's tokenizer: `BertTokenizer`, `DistilBertTokenizer`, `ElectraTokenizer`, `MobileBertTokenizer`, `LxmertTokenizer`, each also with `Fast`; `PreTrainedTokenizerFast`, `TokenizersBackend` beside a tokenizer.json"},
    {"tokenizer_config.json", "do_lower_case", Treatment::read, "", "true where it is missing"},
    {"tokenizer_config.json", "strip_accents", Treatment::read, "", "as do_lower_case where it is missing or null"},
    {"tokenizer_config.json", "tokenize_chinese_chars", Treatment::read, "", "true where it is missing"},
    {"tokenizer_config.json", "whole_words", Treatment::read, "", "a key of our own: the vocabulary holds whole words"},
    {"tokenizer_config.json", "unk_token", Treatment::read, "", "text, or an object as in added_tokens_decoder; so are the others"},
    {"tokenizer_config.json", "sep_token", Treatment::read, "", ""},
    {"tokenizer_config.json", "pad_token", Treatment::read, "", ""},
    {"tokenizer_config.json", "cls_token", Treatment::read, "", ""},
    {"tokenizer_config.json", "mask_token", Treatment::read, "", ""},
    {"tokenizer_config.json", "bos_token", Treatment::read, "", "matched in the text"},
    {"tokenizer_config.json", "eos_token", Treatment::read, "", "matched in the text"},
    {"tokenizer_config.json", "*_token", Treatment::read, "", "every other key that ends so: matched in the text"},
    {"tokenizer_config.json", "additional_special_tokens", Treatment::read, "", "matched in the text"},
    {"tokenizer_config.json", "extra_special_tokens", Treatment::read, "", "matched in the text"},
    {"tokenizer_config.json", "added_tokens_decoder", Treatment::read, "", "matched in the text, by lstrip, rstrip, single_word, normalized"},
    {"tokenizer_config.json", "model_max_length", Treatment::read, "", "the longest text of `embed`, where sentence_bert_config.json has no max_seq_length"},
    {"tokenizer_config.json", "max_len", Treatment::read, "", "where model_max_length is missing"},
    {"tokenizer_config.json", "do_basic_tokenize", Treatment::refused, "true", ""},
    {"tokenizer_config.json", "never_split", Treatment::refused, "[]", ""},
    {"tokenizer_config.json", "word_tokenizer_type", Treatment::refused, "'basic'", "of Japanese models"},
    {"tokenizer_config.json", "subword_tokenizer_type", Treatment::refused, "'wordpiece'", ""},
    {"tokenizer_config.json", "mecab_kwargs", Treatment::refused, "{}", ""},
    {"tokenizer_config.json", "sudachi_kwargs", Treatment::refused, "{}", ""},
    {"tokenizer_config.json", "jumanpp_kwargs", Treatment::refused, "{}", ""},
    {"tokenizer_config.json", "do_word_tokenize", Treatment::refused, "true", ""},
    {"tokenizer_config.json", "do_subword_tokenize", Treatment::refused, "true", ""},
    {"tokenizer_config.json", "wordpieces_prefix", Treatment::refused, "'##'", ""},
    {"tokenizer_config.json", "clean_text", Treatment::refused, "true", ""},
    {"tokenizer_config.json", "truncation_side", Treatment::refused, "'right'", ""},
    {"tokenizer_config.json", "split_special_tokens", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "add_special_tokens", Treatment::refused, "true", ""},
    {"tokenizer_config.json", "auto_map", Treatment::refused, "{}|[]", "the tokenizer is code of its own"},
    {"tokenizer_config.json", "fast_tokenizer_files", Treatment::refused, "[]", "a tokenizer.json by another name"},
    {"tokenizer_config.json", "init_inputs", Treatment::refused, "[]", ""},
    {"tokenizer_config.json", "tokenizer_type", Treatment::refused, "", ""},
    {"tokenizer_config.json", "vocab", Treatment::refused, "", ""},
    {"tokenizer_config.json", "merges", Treatment::refused, "", ""},
    {"tokenizer_config.json", "add_prefix_space", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "use_fast", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "add_bos_token", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "add_eos_token", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "padding_side", Treatment::no_effect, "", "texts are not padded"},
    {"tokenizer_config.json", "padding", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "pad_token_id", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "pad_token_type_id", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "pad_to_multiple_of", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "pad_to_max_length", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "max_length", Treatment::no_effect, "", "the longest is model_max_length, whatever this says"},
    {"tokenizer_config.json", "truncation", Treatment::no_effect, "", "texts are always cut"},
    {"tokenizer_config.json", "truncation_strategy", Treatment::no_effect, "", "of pairs"},
    {"tokenizer_config.json", "stride", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "return_tensors", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "model_input_names", Treatment::read, "", "of scores: whether the tokens of a second text have a type of their own; where it is missing those of `Bert` have, those of `DistilBert` do not, and of a class that says nothing of the tokenizer scores are refused"},
    {"tokenizer_config.json", "clean_up_tokenization_spaces", Treatment::no_effect, "", "of decoding"},
    {"tokenizer_config.json", "spaces_between_special_tokens", Treatment::no_effect, "", "of decoding"},
    {"tokenizer_config.json", "decode_with_prefix_space", Treatment::no_effect, "", "of decoding"},
    {"tokenizer_config.json", "chat_template", Treatment::read, "", "refused, as is chat_template.jinja, by `embed()` without modules.json and by `score()` of a folder that is no CrossEncoder's; else no effect"},
    {"tokenizer_config.json", "processor_class", Treatment::read, "", "no name of a tokenizer, in config.json neither; preprocessor_config.json and processor_config.json name none at all"},
    {"tokenizer_config.json", "name_or_path", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "special_tokens_map_file", Treatment::no_effect, "", "where the tokens once came from"},
    {"tokenizer_config.json", "tokenizer_file", Treatment::no_effect, "", "where it once lay"},
    {"tokenizer_config.json", "vocab_file", Treatment::no_effect, "", "where it once lay"},
    {"tokenizer_config.json", "backend", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "is_local", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "local_files_only", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "files_loaded", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "from_slow", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "is_fast", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "_commit_hash", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "transformers_version", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "verbose", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "errors", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "trust_remote_code", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "cache_dir", Treatment::no_effect, "", ""},
    {"special_tokens_map.json", "unk_token", Treatment::read, "", "read where tokenizer_config.json has no added_tokens_decoder, and then before it; so are the others"},
    {"special_tokens_map.json", "sep_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "pad_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "cls_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "mask_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "bos_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "eos_token", Treatment::read, "", ""},
    {"special_tokens_map.json", "*_token", Treatment::read, "", "every other key that ends so"},
    {"special_tokens_map.json", "additional_special_tokens", Treatment::read, "", ""},
    {"special_tokens_map.json", "extra_special_tokens", Treatment::read, "", ""},
    {"added_tokens.json", "[]", Treatment::read, "", "each key is a token, each value its id; read where tokenizer_config.json has no added_tokens_decoder"},
    {"tokenizer.json", "version", Treatment::no_effect, "", ""},
    {"tokenizer.json", "truncation", Treatment::read, "", "its direction must be `Right`; lengths are those of tokenizer_config.json"},
    {"tokenizer.json", "padding", Treatment::read, "", "its pad_token must be one of added_tokens, where the other files name none; texts are not padded"},
    {"tokenizer.json", "decoder", Treatment::no_effect, "", "of decoding"},
    {"tokenizer.json", "added_tokens", Treatment::read, "", "matched in the text, by lstrip, rstrip, single_word, normalized"},
    {"tokenizer.json", "normalizer.type", Treatment::read, "", "`BertNormalizer`, or no normalizer at all with tokenizer_class PreTrainedTokenizerFast"},
    {"tokenizer.json", "normalizer.clean_text", Treatment::read, "", ""},
    {"tokenizer.json", "normalizer.handle_chinese_chars", Treatment::read, "", "but tokenizer_config.json, or its default, comes before it for a tokenizer_class of BERT's; so it does for the next two"},
    {"tokenizer.json", "normalizer.strip_accents", Treatment::read, "", ""},
    {"tokenizer.json", "normalizer.lowercase", Treatment::read, "", ""},
    {"tokenizer.json", "pre_tokenizer.type", Treatment::refused, "'BertPreTokenizer'", ""},
    {"tokenizer.json", "post_processor.type", Treatment::read, "", "`TemplateProcessing` or `BertProcessing`: a token, the text, a token"},
    {"tokenizer.json", "post_processor.single", Treatment::read, "", ""},
    {"tokenizer.json", "post_processor.special_tokens", Treatment::read, "", ""},
    {"tokenizer.json", "post_processor.cls", Treatment::read, "", ""},
    {"tokenizer.json", "post_processor.sep", Treatment::read, "", ""},
    {"tokenizer.json", "post_processor.pair", Treatment::read, "", "BERT's: [CLS], the first text, [SEP], the second text, [SEP], the last two of type 1"},
    {"tokenizer.json", "model.type", Treatment::read, "", "`WordPiece`, or nothing in the oldest files"},
    {"tokenizer.json", "model.vocab", Treatment::read, "", "in place of vocab.txt"},
    {"tokenizer.json", "model.unk_token", Treatment::read, "", "`[UNK]` where it is missing"},
    {"tokenizer.json", "model.continuing_subword_prefix", Treatment::read, "", "`##` where it is missing"},
    {"tokenizer.json", "model.max_input_chars_per_word", Treatment::read, "", "1 to 100; 100 where it is missing"},
    {"sentence_bert_config.json", "max_seq_length", Treatment::read, "", "the longest text of `embed`; with rotary embeddings at most max_position_embeddings"},
    {"sentence_bert_config.json", "do_lower_case", Treatment::read, "", "text in lower case, its accents as before"},
    {"sentence_bert_config.json", "tokenizer_name_or_path", Treatment::refused, "", ""},
    {"sentence_bert_config.json", "transformer_task", Treatment::refused, "'feature-extraction'|'sequence-classification'", "the first of vectors, the second of a CrossEncoder's scores"},
    {"sentence_bert_config.json", "modality_config", Treatment::read, "", "of text: method `forward`, method_output_name `last_hidden_state`, of scores `logits`; no `message`, which would put texts through a chat's template"},
    {"sentence_bert_config.json", "module_output_name", Treatment::refused, "'token_embeddings'|'scores'", "the same"},
    {"sentence_bert_config.json", "processing_kwargs", Treatment::refused, "{}", ""},
    {"sentence_bert_config.json", "query_expansion", Treatment::refused, "{}", ""},
    {"sentence_bert_config.json", "model_args", Treatment::read, "", "no member but `add_pooling_layer`, `attn_implementation`, `dtype`, `torch_dtype`, `trust_remote_code`, `use_safetensors`; so with the next five"},
    {"sentence_bert_config.json", "model_kwargs", Treatment::read, "", ""},
    {"sentence_bert_config.json", "tokenizer_args", Treatment::read, "", ""},
    {"sentence_bert_config.json", "processor_kwargs", Treatment::read, "", ""},
    {"sentence_bert_config.json", "config_args", Treatment::read, "", ""},
    {"sentence_bert_config.json", "config_kwargs", Treatment::read, "", ""},
    {"sentence_bert_config.json", "query_length", Treatment::no_effect, "", "of texts that are called queries"},
    {"sentence_bert_config.json", "document_length", Treatment::no_effect, "", "of texts that are called documents"},
    {"sentence_bert_config.json", "unpad_inputs", Treatment::no_effect, "", ""},
    {"sentence_bert_config.json", "backend", Treatment::no_effect, "", ""},
    {"sentence_bert_config.json", "cache_dir", Treatment::no_effect, "", ""},
    {"config_sentence_transformers.json", "prompts", Treatment::read, "", "by name: what stands in front of a text; `query` and `document` are empty unless they are here"},
    {"config_sentence_transformers.json", "default_prompt_name", Treatment::read, "", "one of prompts, for every text that is given none"},
    {"config_sentence_transformers.json", "model_type", Treatment::refused, "'SentenceTransformer'", "by `embed()`; `score()` also takes `CrossEncoder`, then with activation_fn, without default_prompt_name and with a Transformer alone in modules.json"},
    {"config_sentence_transformers.json", "activation_fn", Treatment::read, "", "of scores, where model_type is `CrossEncoder`, before that of config.json"},
    {"config_sentence_transformers.json", "similarity_fn_name", Treatment::no_effect, "", "vectors are the same, and of length 1"},
    {"config_sentence_transformers.json", "__version__", Treatment::no_effect, "", ""},
    {"config_sentence_transformers.json", "truncate_dim", Treatment::read, "", "the first so many numbers of a vector are kept, then normalised; more than it has are all of them"},
    {"modules.json", "[].type", Treatment::read, "", "`Transformer` first, then `Pooling`, then any of `Dense`, `LayerNorm`, `Normalize`, `Dropout`; the last part of a name that begins with `sentence_transformers.`"},
    {"modules.json", "[].path", Treatment::read, "", "a folder below this one; of the first module also this one"},
    {"modules.json", "[].idx", Treatment::no_effect, "", "modules follow each other as they stand"},
    {"modules.json", "[].name", Treatment::read, "", "no two may be the same"},
    {"modules.json", "[].kwargs", Treatment::no_effect, "", "names of arguments that may be handed on"},
    {"1_Pooling/config.json", "pooling_mode", Treatment::read, "", "one name or a list: `cls`, `max`, `mean`, `mean_sqrt_len_tokens`, `weightedmean`, `lasttoken`; the vectors of a list stand side by side in its order"},
    {"1_Pooling/config.json", "pooling_mode_cls_token", Treatment::read, "", "where pooling_mode is missing, as the next five, in the order of this table; `mean` where none is true"},
    {"1_Pooling/config.json", "pooling_mode_max_tokens", Treatment::read, "", ""},
    {"1_Pooling/config.json", "pooling_mode_mean_tokens", Treatment::read, "", ""},
    {"1_Pooling/config.json", "pooling_mode_mean_sqrt_len_tokens", Treatment::read, "", ""},
    {"1_Pooling/config.json", "pooling_mode_weightedmean_tokens", Treatment::read, "", ""},
    {"1_Pooling/config.json", "pooling_mode_lasttoken", Treatment::read, "", ""},
    {"1_Pooling/config.json", "include_prompt", Treatment::read, "", "false or null leaves the tokens of a prompt out"},
    {"1_Pooling/config.json", "word_embedding_dimension", Treatment::no_effect, "", "it is hidden_size"},
    {"1_Pooling/config.json", "embedding_dimension", Treatment::no_effect, "", "it is hidden_size"},
    {"2_Dense/config.json", "in_features", Treatment::read, "", ""},
    {"2_Dense/config.json", "out_features", Treatment::read, "", ""},
    {"2_Dense/config.json", "bias", Treatment::read, "", "true where it is missing"},
    {"2_Dense/config.json", "activation_function", Treatment::read, "", "`torch.nn.modules.activation.Tanh`, also where it is missing, `ReLU`, `GELU`, `SiLU`, `Sigmoid`, `torch.nn.modules.linear.Identity`"},
    {"2_Dense/config.json", "module_input_name", Treatment::refused, "'sentence_embedding'", ""},
    {"2_Dense/config.json", "module_output_name", Treatment::refused, "'sentence_embedding'", ""},
    {"2_Dense/config.json", "use_residual", Treatment::refused, "false", ""},
    {"2_LayerNorm/config.json", "dimension", Treatment::read, "", ""},
    {"2_Normalize/config.json", "module_input_name", Treatment::refused, "'sentence_embedding'", ""},
    {"2_Normalize/config.json", "module_output_name", Treatment::refused, "'sentence_embedding'", ""},
    {"2_Dropout/config.json", "dropout", Treatment::no_effect, "", "of training"},
};
// clang-format on

// Of those files, whose publishers put keys of their own there: Transformers and sentence-transformers pass over what
// they do not know, too.
constexpr std::array<std::string_view, 4> kReported = {"config.json", "tokenizer_config.json",
                                                       "config_sentence_transformers.json", "modules.json"};

// More of them are not listed.
constexpr std::size_t kMostReported = 100;

std::span<const FolderKey> keys_of(std::string_view file) {
  const auto is_of = [&](const FolderKey& entry) { return entry.file == file; };
  const auto* const begin = std::find_if(std::begin(kKeys), std::end(kKeys), is_of);
  return {begin, std::find_if_not(begin, std::end(kKeys), is_of)};
}

// What stands for an object whose members have entries: "normalizer" before "normalizer.type".
constexpr FolderKey kObject = {"", "", Treatment::read, "", ""};

const FolderKey* find(std::span<const FolderKey> keys, const std::string& key) {
  const FolderKey* found = nullptr;
  for (const FolderKey& entry : keys) {
    const std::string_view known = entry.key;
    if (known == key) return &entry;
    if (known.starts_with(key) && known.substr(key.size()).starts_with('.')) found = &kObject;
    if (known == "*_token" && key.ends_with("_token")) found = &entry;
  }
  return found;
}

// What was expected in place of a refused value, without quotes.
std::string expected(std::string_view accepted) {
  if (accepted.empty()) return "nothing";
  std::string words;
  for (const char letter : accepted) {
    if (letter == '|') {
      words += " or ";
    } else if (letter != '\'') {
      words += letter;
    }
  }
  return words;
}

}  // namespace

std::span<const FolderKey> folder_keys() noexcept { return kKeys; }

bool is_among(std::string_view values, std::string_view value) noexcept {
  while (!values.empty()) {
    const std::size_t end = std::min(values.find('|'), values.size());
    if (values.substr(0, end) == value) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

Unknown unknown_keys_of(std::string_view file) noexcept {
  return std::find(kReported.begin(), kReported.end(), file) != kReported.end() ? Unknown::reported : Unknown::refused;
}

void check_keys(const JsonValue& object, std::string_view file, std::string_view prefix,
                std::vector<std::string>& unknown, std::span<const FolderKey> own) {
  const std::span<const FolderKey> keys = keys_of(file);
  const bool reported = unknown_keys_of(file) == Unknown::reported;
  for (const auto& [key, value] : object.members()) {
    if (value.is_null()) continue;
    const std::string path = std::string(prefix).append(key);
    const FolderKey* const first = find(own, path);
    const FolderKey* const entry = first != nullptr ? first : find(keys, path);
    const std::string is = value.described();
    if (entry == nullptr) {
      if (reported) {
        if (unknown.size() < kMostReported) unknown.push_back(printable(value.path()) + ": " + object.place_of(key));
      } else if (is != "false" && is != "{}" && is != "[]") {
        value.fail("is " + is + ", a key that is not known here, expected nothing");
      }
    } else if (entry->treatment == Treatment::refused && !is_among(entry->accepted, is)) {
      value.fail("is " + is + ", expected " + expected(entry->accepted));
    }
  }
}

}  // namespace headlight::models
