// SPDX-License-Identifier: Apache-2.0
#pragma once

/// sentinel: the status columns that the engines of the pipeline hand to each other.

#include "pawl/row_machine.hpp"
#include "pawl/verify.hpp"

namespace seeds::sentinel {

/// The rows carry everything; the machines only say how a status may move.
struct NoData {};

// ---- what an upstream event is ----------------------------------------------------------------------------

enum class Classification { unclassified, security_bugfix, normal_bugfix, refactor, feature, other };

struct SecurityBugfix {};
struct NormalBugfix {};
struct Refactor {};
struct Feature {};
struct Other {};

/// Classified once and for all.
inline constexpr auto event =
    pawl::machine<Classification, NoData>("sentinel_event")
        .initial(Classification::unclassified)
        .on<SecurityBugfix>(Classification::unclassified, Classification::security_bugfix)
        .on<NormalBugfix>(Classification::unclassified, Classification::normal_bugfix)
        .on<Refactor>(Classification::unclassified, Classification::refactor)
        .on<Feature>(Classification::unclassified, Classification::feature)
        .on<Other>(Classification::unclassified, Classification::other)
        .terminal(Classification::security_bugfix, Classification::normal_bugfix, Classification::refactor,
                  Classification::feature, Classification::other);
static_assert(pawl::verified<event>);

inline constexpr pawl::RowMachine<event> event_rows{
    {.table = "events", .column = "classification", .key = "id"}, Classification::unclassified};

// ---- a vulnerability found upstream -----------------------------------------------------------------------

enum class UpstreamVuln { analyzing, published, failed };

struct Publish {};
struct AnalysisFailed {};
struct GiveUp {};
struct RetryAnalysis {};

/// A failed analysis is noted and tried again; when the attempts are used up a person may ask for more.
inline constexpr auto upstream_vuln = pawl::machine<UpstreamVuln, NoData>("sentinel_upstream_vuln")
                                          .initial(UpstreamVuln::analyzing)
                                          .on<Publish>(UpstreamVuln::analyzing, UpstreamVuln::published)
                                          .stay<AnalysisFailed>(UpstreamVuln::analyzing)
                                          .on<GiveUp>(UpstreamVuln::analyzing, UpstreamVuln::failed)
                                          .on<RetryAnalysis>(UpstreamVuln::failed, UpstreamVuln::analyzing)
                                          .terminal(UpstreamVuln::published);
static_assert(pawl::verified<upstream_vuln>);

// ---- what it means for a client: how far the engines are --------------------------------------------------

enum class Pipeline { pending, path_searching, verified, not_affect, inconclusive };

struct Exclude {};
struct SearchPath {};
struct PathFound {};
struct NoPath {};
struct NoVerdict {};

/// A project that the version comparison clears ends at once; a search that could not tell says so.
inline constexpr auto client_pipeline =
    pawl::machine<Pipeline, NoData>("sentinel_client_pipeline")
        .initial(Pipeline::pending)
        .on<Exclude>(Pipeline::pending, Pipeline::not_affect)
        .on<SearchPath>(Pipeline::pending, Pipeline::path_searching)
        .on<PathFound>(Pipeline::path_searching, Pipeline::verified)
        .on<NoPath>(Pipeline::path_searching, Pipeline::not_affect)
        .on<NoVerdict>(Pipeline::path_searching, Pipeline::inconclusive)
        .terminal(Pipeline::verified, Pipeline::not_affect, Pipeline::inconclusive);
static_assert(pawl::verified<client_pipeline>);

// ---- what it means for a client: how far the people are ---------------------------------------------------

enum class ClientStatus { undecided, recorded, reported, confirmed, fixed, not_affect, dismissed };

struct Record {};
struct Clear {};
struct Report {};
struct Confirm {};
struct Fix {};
struct Dismiss {};

/// The engines record or clear, people take it from there. Until it is fixed, a false positive may be
/// dismissed.
inline constexpr auto client_status =
    pawl::machine<ClientStatus, NoData>("sentinel_client_status")
        .initial(ClientStatus::undecided)
        .on<Record>(ClientStatus::undecided, ClientStatus::recorded)
        .on<Clear>(ClientStatus::undecided, ClientStatus::not_affect)
        .on<Report>(ClientStatus::recorded, ClientStatus::reported)
        .on<Confirm>(ClientStatus::reported, ClientStatus::confirmed)
        .on<Fix>(ClientStatus::confirmed, ClientStatus::fixed)
        .on<Dismiss>(pawl::from(ClientStatus::recorded, ClientStatus::reported, ClientStatus::confirmed),
                     ClientStatus::dismissed)
        .terminal(ClientStatus::fixed, ClientStatus::not_affect, ClientStatus::dismissed);
static_assert(pawl::verified<client_status>);

inline constexpr pawl::RowMachine<client_status> client_status_rows{
    {.table = "client_vulns", .column = "status", .key = "id"}, ClientStatus::undecided};

}  // namespace seeds::sentinel
