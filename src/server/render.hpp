// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Renders the API's answers as JSON. schemas.cpp has their schemas.

#include <string>

#include "pawl/definition.hpp"
#include "pawl/flows.hpp"
#include "pawl/http.hpp"
#include "pawl/instance.hpp"
#include "pawl/json.hpp"

namespace pawl::server {

/// Replaces data that the caller's role does not see.
inline constexpr std::string_view kConfidential = "(confidential)";

/// Whether this role sees data that is shown to `readers`.
bool sees_data(http::Role role, Readers readers);
/// The same for a machine. Only administrators see the data of a machine that is not registered here,
/// because its readers are unknown.
bool sees_data(http::Role role, const Definition* definition);

/// With the legal events of its state, if the definition is known. The data as `role` sees it.
void write_instance(JsonWriter& out, const Instance& instance, const Definition* definition, http::Role role);
/// `visible`: with its payload and data.
void write_event(JsonWriter& out, const LogEvent& event, bool visible);
void write_machine(JsonWriter& out, const Definition& definition,
                   const std::map<std::string, std::size_t>& counts);

/// `visible`: with its request, response and what its steps said.
void write_run(JsonWriter& out, const Run& run, bool visible);
void write_span(JsonWriter& out, const RunSpan& span, bool visible);
void write_flow(JsonWriter& out, const FlowDefinition& flow,
                const std::map<std::string, std::size_t>& counts);

/// Differs between an answer with the data and one without.
std::string etag(const Instance& instance, bool visible);

}  // namespace pawl::server
