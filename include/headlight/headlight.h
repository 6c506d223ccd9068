// headlight from C (C99 or later), and from every language that can call C: multi-head attention for CPUs.
//
// Functions that can fail return a status, and take as last argument a headlight_error, or NULL, into which they write
// the message. It lies with the caller because nothing else is right for everybody: an engine serves many threads at
// once, and a message kept for each thread would be a global, and lost where a language moves its tasks from thread to
// thread. No function prints, ends the process or lets an exception out.
//
// Options are structs that begin with their size: `headlight_gemm_options options = {.struct_size = sizeof options};`
// A field of zero, and NULL in place of the struct, mean the default, so a library newer than the caller finds the
// defaults in fields that the caller does not know; one that is older refuses fields it does not know unless they are
// zero. What is only meant now and then and may itself be zero is behind a pointer. Enumerations are int32_t, so that
// they have one size in every language; a value without a name is refused.
//
// Threads: any number may use one engine at once, and any number may read one of the other objects; changing an object
// (headlight_layer_set_parameter, backward passes …) and destroying it need it to oneself. Nothing that is handed to a
// function needs to outlive the call, except an executor's context and what attention streams, saved states and
// optimizers are made of. A computation repeated with the same shapes allocates nothing, unless it is refused. The C++
// headers say the same things at greater length.
#pragma once

#include "headlight/c/attention.h"
#include "headlight/c/attention_stream.h"
#include "headlight/c/engine.h"
#include "headlight/c/layers.h"
#include "headlight/c/network.h"
#include "headlight/c/operations.h"
#include "headlight/c/optimizer.h"
#include "headlight/c/training.h"
