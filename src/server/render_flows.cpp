// SPDX-License-Identifier: Apache-2.0
// Flows and their runs as JSON.
#include "pawl/names.hpp"
#include "pawl/time.hpp"
#include "server/render.hpp"

namespace pawl::server {
namespace {

void write_ref(JsonWriter& out, const RunRef& ref) {
  out.field("flow").string(ref.flow).field("id").string(ref.id);
}

void write_plan(JsonWriter& out, const RunPlan& plan) {
  if (plan.queue) out.field("queue").string(*plan.queue);
  if (plan.priority != 0) out.field("priority").integer(std::int64_t{plan.priority});
  if (plan.not_before) out.field("not_before").string(to_string(*plan.not_before));
  if (!plan.after) return;
  out.field("after").begin_object();
  write_ref(out, plan.after->run);
  out.field("on").string(enum_name(plan.after->on));
  if (plan.after->ended) out.field("ended").string(enum_name(*plan.after->ended));
  out.end_object();
}

void write_family(JsonWriter& out, const RunFamily& family) {
  if (family.parent) {
    out.field("parent").begin_object();
    write_ref(out, *family.parent);
    out.end_object();
  }
  if (family.children.empty()) return;
  out.field("children").begin_array();
  for (const auto& child : family.children) {
    out.begin_object();
    write_ref(out, {child.run.flow, child.run.id});
    if (child.ended) out.field("ended").string(enum_name(*child.ended));
    out.end_object();
  }
  out.end_array();
}

std::string_view or_null(const std::string& json) {
  return json.empty() ? std::string_view("null") : std::string_view(json);
}

}  // namespace

void write_run(JsonWriter& out, const Run& run, bool visible) {
  // An error or a progress may quote the request.
  const auto text_of = [visible](const std::string& text) {
    return visible ? std::string_view(text) : kConfidential;
  };
  out.begin_object().field("flow").string(run.flow).field("id").string(run.id).field("ulid").string(run.ulid);
  out.field("state").string(enum_name(run.state)).field("status").string(run.status);
  out.field("finished").boolean(run.finished).field("generation").integer(run.generation);
  out.field("step").string(run.step).field("attempt").integer(std::int64_t{run.attempt});
  if (visible) {
    out.field("request").splice(or_null(run.request)).field("response").splice(or_null(run.response));
  } else {
    out.field("request").string(kConfidential).field("response").string(kConfidential);
    out.field("redacted").boolean(true);
  }
  if (!run.error.empty()) out.field("error").string(text_of(run.error));
  if (run.kind) out.field("kind").string(enum_name(*run.kind));
  if (run.next_attempt) out.field("next_attempt").string(to_string(*run.next_attempt));
  if (run.plan) write_plan(out, *run.plan);
  if (run.family) write_family(out, *run.family);
  if (!run.cleanup_errors.empty()) {
    out.field("cleanup_errors").begin_array();
    for (const auto& error : run.cleanup_errors) out.string(text_of(error));
    out.end_array();
  }
  if (run.progress) out.field("progress").number(*run.progress);
  if (!run.progress_text.empty()) out.field("progress_text").string(text_of(run.progress_text));
  out.field("created_at").string(to_string(run.created_at)).field("at").string(to_string(run.at));
  if (run.attached) out.field("attached").boolean(true);
  out.end_object();
}

void write_span(JsonWriter& out, const RunSpan& span, bool visible) {
  out.begin_object().field("kind").string(enum_name(span.kind)).field("step").string(span.step);
  out.field("attempt").integer(std::int64_t{span.attempt}).field("from").string(to_string(span.from));
  if (span.to) out.field("to").string(to_string(*span.to));
  out.field("outcome").string(span.outcome);
  if (!span.error.empty()) out.field("error").string(visible ? std::string_view(span.error) : kConfidential);
  out.end_object();
}

void write_flow(JsonWriter& out, const FlowDefinition& flow,
                const std::map<std::string, std::size_t>& counts) {
  out.begin_object().key("name").string(flow.name).key("steps").begin_array();
  for (const auto& step : flow.steps) {
    out.begin_object().key("name").string(step.name).key("remote").boolean(step.lease.has_value());
    out.key("undo").boolean(static_cast<bool>(step.undo)).key("finalizer").boolean(step.finalizer);
    out.end_object();
  }
  out.end_array().key("counts").begin_object();
  for (const auto& [state, count] : counts) out.key(state).integer(std::uint64_t{count});
  out.end_object().end_object();
}

}  // namespace pawl::server
