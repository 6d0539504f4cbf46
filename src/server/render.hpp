// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the API shows, as JSON. The schemas in schemas.cpp describe the same.

#include <string>

#include "pawl/definition.hpp"
#include "pawl/flows.hpp"
#include "pawl/instance.hpp"
#include "pawl/json.hpp"

namespace pawl::server {

/// With the events that are legal in its state, where the definition is known.
void write_instance(JsonWriter& out, const Instance& instance, const Definition* definition);
void write_event(JsonWriter& out, const LogEvent& event);
void write_machine(JsonWriter& out, const Definition& definition,
                   const std::map<std::string, std::size_t>& counts);

void write_run(JsonWriter& out, const Run& run);
void write_span(JsonWriter& out, const RunSpan& span);
void write_flow(JsonWriter& out, const FlowDefinition& flow,
                const std::map<std::string, std::size_t>& counts);

std::string etag(const Instance& instance);

}  // namespace pawl::server
