// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The registry of error codes. Numbers are permanent: never reuse one, never renumber; a retired code keeps
/// its line with a note. 1xxx machines and instances, 2xxx input, 3xxx store, 4xxx running and limits, 5xxx
/// patterns, 6xxx the server, 7xxx the
/// systems.
///
///     return pawl::fail(pawl::Code::unknown_machine, "no machine 'dor' is registered; known: door");
///
/// A new code needs a line here and a page `docs/errors/<number>.md`; a test compares the two.

#include <cstdint>

// X(number, name, one sentence)
#define PAWL_ERROR_CODES(X)                                                                                  \
  X(1001, illegal_event, "The instance's state does not accept this event.")                                 \
  X(1002, guard_refused, "The event is legal in this state, but a guard refused it.")                        \
  X(1003, unknown_machine, "No machine of this name is registered.")                                         \
  X(1004, unknown_state, "The machine has no state of this name.")                                           \
  X(1005, unknown_event, "The machine has no event of this name.")                                           \
  X(1006, unknown_instance, "No instance has this key.")                                                     \
  X(1007, finished_instance, "The instance is in a terminal state and accepts nothing more.")                \
  X(1008, duplicate_instance, "An instance of this key exists already.")                                     \
  X(1009, version_conflict, "The instance changed since the version the caller expected.")                   \
  X(1010, duplicate_machine, "A machine of this name is registered already.")                                \
  X(1011, unsupported_schema, "Stored data has a schema number that this program cannot read.")              \
  X(1012, wrong_partition, "A transaction touches instances of more than one partition.")                    \
  X(1013, decision_threw, "A guard or an update of a machine threw an exception.")                           \
  X(2001, invalid_argument, "An argument has a value that is not allowed.")                                  \
  X(2002, malformed_json, "The text is not valid JSON.")                                                     \
  X(2003, wrong_type, "A JSON value does not have the type or range that its field needs.")                  \
  X(2004, missing_field, "A required field is absent.")                                                      \
  X(2005, too_deep, "The input is nested more deeply than the limit.")                                       \
  X(2006, too_large, "The input is larger than the limit.")                                                  \
  X(2007, unencodable, "A value cannot be written as JSON.")                                                 \
  X(2008, unknown_name, "A name is not one of the known ones.")                                              \
  X(2009, request_id_reused, "The request id was used before with other content.")                           \
  X(2010, cursor_invalid, "The cursor was not made by this store.")                                          \
  X(2011, cursor_expired, "The cursor points below the retention horizon.")                                  \
  X(3001, store_poisoned, "The store failed to make a commit durable and must be reopened.")                 \
  X(3002, outcome_unknown, "The store failed before it was known whether the commit is durable.")            \
  X(3003, disk_full, "There is no space left on the device.")                                                \
  X(3004, store_locked, "Another process owns the store.")                                                   \
  X(3005, store_newer, "The store was written by a newer version of the program.")                           \
  X(3006, store_corrupt, "The store's content is damaged.")                                                  \
  X(3007, store_read_only, "The store was opened for reading only.")                                         \
  X(3008, store_fenced, "A newer owner has taken the store over.")                                           \
  X(3009, store_io, "The store could not be read or written.")                                               \
  X(3010, sql_refused, "An application statement is not allowed in a transaction.")                          \
  X(3011, sql_failed, "An application statement failed; the transaction was not applied.")                   \
  X(3012, row_expectation_failed, "An application statement affected another number of rows than expected.") \
  X(3013, rolled_back, "The database rolled the batch back; nothing of it was applied.")                     \
  X(3014, store_unsafe, "The database's settings would lose what was acknowledged.")                         \
  X(3015, store_diverged, "The database is in an older state than this store has seen.")                     \
  X(4001, cancelled, "The operation was cancelled.")                                                         \
  X(4002, timed_out, "The operation did not finish within its time.")                                        \
  X(4003, overloaded, "A bounded queue is full.")                                                            \
  X(4004, stopped, "The runtime is stopping and takes no new work.")                                         \
  X(4005, unknown_pool, "No permit pool has this name.")                                                     \
  X(4006, retries_exhausted, "The last allowed attempt failed.")                                             \
  X(4007, subscriber_lagged, "The subscriber was too slow and was disconnected with its cursor.")            \
  X(4008, internal, "A broken invariant was found; please report it.")                                       \
  X(4009, work_threw, "The handler of a piece of work threw an exception.")                                  \
  X(4010, lease_lost, "The lease on a piece of work has ended; another worker may do it now.")               \
  X(5001, template_invalid, "A template holds an expression that cannot be read.")                           \
  X(5002, variable_missing, "A template names a variable that is not there.")                                \
  X(5003, spec_invalid, "The specification of a worker is not allowed.")                                     \
  X(5004, unknown_worker_type, "No worker type of this name is registered.")                                 \
  X(5005, worker_threw, "A function of a worker threw an exception.")                                        \
  X(5006, not_observed, "The worker was not observed within its time.")                                      \
  X(5007, desired_conflict, "What is desired of the worker changed since the version the caller expected.")  \
  X(6001, unauthenticated, "The request carries no valid credentials.")                                      \
  X(6002, forbidden, "The caller's role does not allow this.")                                               \
  X(6003, unknown_route, "Nothing is served at this path.")                                                  \
  X(6004, method_not_allowed, "The path is served, but not with this method.")                               \
  X(6005, unsupported_media_type, "The body is not of a type that the route reads.")                         \
  X(6006, rate_limited, "Too much came from this caller; wait.")                                             \
  X(6007, malformed_request, "The request is not valid HTTP.")                                               \
  X(6008, slow_request, "The request did not arrive within its time.")                                       \
  X(6009, header_too_large, "The request's header is larger than the limit.")                                \
  X(6010, config_invalid, "The configuration has a key or value that is not allowed.")                       \
  X(6011, unsafe_address, "The server refuses to listen on this address without protection.")                \
  X(6020, unreachable, "The server could not be reached.")                                                   \
  X(6021, answer_invalid, "What came back is not the answer of a Pawl server.")                              \
  X(7001, source_missing, "The source of an image has no object of this name.")                              \
  X(7002, source_denied, "The source of an image refuses access.")                                           \
  X(7003, source_changed, "The object of an image changed while it was downloaded.")                         \
  X(7004, source_failed, "The source of an image could not be reached, or failed.")                          \
  X(7010, archive_corrupt, "The image is not a readable tar archive.")                                       \
  X(7011, archive_hostile, "The image holds something that is not accepted.")                                \
  X(7012, layout_invalid, "The image does not have the layout that is expected.")                            \
  X(7020, backend_unavailable, "The place where images are unpacked cannot be used.")                        \
  X(7021, pool_full, "The pool of volumes has no space left.")                                               \
  X(7022, volume_missing, "The pool has no volume of this id.")                                              \
  X(7023, volume_exists, "The pool has another volume under this id.")                                       \
  X(7024, volume_busy, "The volume is in use.")                                                              \
  X(7025, volume_failed, "The volume could not be read or written.")                                         \
  X(7030, process_failed, "A process could not be started, watched or stopped.")                             \
  X(7031, connection_failed, "A supervised connection could not be made or was lost.")

namespace pawl {

/// Error codes; the number is what documentation and logs show as PAWL-<number>.
enum class Code : std::uint16_t {
#define PAWL_CODE_ENUMERATOR(number, name, summary) name = number,
  PAWL_ERROR_CODES(PAWL_CODE_ENUMERATOR)
#undef PAWL_CODE_ENUMERATOR
};

}  // namespace pawl
