# SPDX-License-Identifier: Apache-2.0
"""Series that make each alert of deploy/monitoring fire: one row for each. test_monitoring.py gives them to promtool."""
from __future__ import annotations

from typing import NamedTuple

Q = 'queue="shop"'
JOBS = ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver")

#: A healthy installation with a sale in it: no alert fires. name{labels} -> values, a sample every 30 seconds.
#: In the notation of promtool: start+step x times.
HEALTHY: dict[str, str] = {f'up{{job="{job}",instance="{job}-0"}}': "1x50" for job in JOBS}
HEALTHY |= {f'up{{job="{job}",instance="{job}-1"}}': "1x50" for job in JOBS}
HEALTHY |= {f'tellerline_ready{{role="{job}"}}': "1x50" for job in JOBS}
HEALTHY |= {f'tellerline_reload_failed{{role="{job}"}}': "0x50" for job in JOBS}
for _role in JOBS[1:]:
    HEALTHY |= {f'tellerline_{_role}_queues{{role="{_role}",instance="{_role}-0"}}': "1x50",
                f'tellerline_{_role}_queues{{role="{_role}",instance="{_role}-1"}}': "0x50",
                f'tellerline_{_role}_queues_listed{{role="{_role}",instance="{_role}-0"}}': "1x50",
                f'tellerline_{_role}_queues_troubled{{role="{_role}",instance="{_role}-0"}}': "0x50",
                f'tellerline_store_seconds_bucket{{role="{_role}",le="0.1"}}': "0+100x50",
                f'tellerline_store_seconds_bucket{{role="{_role}",le="+Inf"}}': "0+100x50"}
HEALTHY |= {
    f"tellerline_queue_waiting{{{Q}}}": "500x50",
    f"tellerline_queue_active{{{Q}}}": "100x50",
    f"tellerline_queue_capacity{{{Q}}}": "100x50",
    f'tellerline_queue_state{{{Q},state="open"}}': "1x50",
    f"tellerline_queue_admitted_total{{{Q}}}": "0+30x50",
    f"tellerline_queue_joined_total{{{Q}}}": "0+30x50",
    f"tellerline_queue_gave_up_total{{{Q}}}": "0+1x50",
    f"tellerline_queue_completed_total{{{Q}}}": "0+25x50",
    f"tellerline_queue_left_total{{{Q}}}": "0+1x50",
    f"tellerline_queue_expired_total{{{Q}}}": "0+1x50",
    f"tellerline_queue_no_shows_total{{{Q}}}": "0+3x50",
    f"tellerline_queue_over_admission{{{Q}}}": "0x50",
    f"tellerline_queue_without_feedback{{{Q}}}": "0x50",
    f"tellerline_queue_wait_seconds_sum{{{Q}}}": "0+7500x50",
    f"tellerline_queue_wait_seconds_count{{{Q}}}": "0+30x50",
    f"tellerline_worker_queue_eta_judged_total{{{Q}}}": "0+5x50",
    f"tellerline_worker_queue_eta_early_total{{{Q}}}": "0+1x50",
    f"tellerline_worker_queue_eta_late_total{{{Q}}}": "0+0x50",
    f"tellerline_worker_queue_eta_error_percent_total{{{Q}}}": "0+60x50",
    "tellerline_worker_streams_opened_total": "0+100x50",
    "tellerline_worker_streams_failed_total": "0+1x50",
    "tellerline_worker_answers_ok_total": "0+900x50",
    "tellerline_worker_answers_failed_total": "0+1x50",
    "tellerline_worker_joins_refused_total": "0x50",
    "tellerline_worker_tickets_refused_total": "0+1x50",
    'tellerline_worker_ticket_key{fingerprint="aa"}': "2x50",
    "tellerline_worker_verifications_unreachable_total": "0x50",
    "tellerline_worker_verifications_timed_out_total": "0x50",
    "tellerline_worker_connections": "500x50",
    "tellerline_worker_connections_max": "19000x50",
    "tellerline_worker_restarts_total": "0x50",
    "tellerline_worker_webhooks": "1x50",
    'tellerline_webhooks{role="notifier"}': "1x50",
    'tellerline_archive_connected{role="archiver"}': "1x50",
    'tellerline_archive_behind_seconds{role="archiver"}': "0x50",
    'tellerline_archive_missing{role="archiver"}': "0x50",
    'tellerline_archive_differences{role="archiver"}': "0x50",
    'tellerline_archive_trails_damaged{role="archiver"}': "0x50",
    "tellerline_worker_batches_refused_total": "0x50",
    "tellerline_worker_store_memory_bytes": "500x50",
    "tellerline_worker_store_memory_max_bytes": "1000x50",
    "tellerline_worker_store_not_written": "0x50",
    "tellerline_worker_store_appendonly": "1x50",
    'tellerline_worker_ingest_seconds_bucket{le="0.1"}': "0+100x50",
    'tellerline_worker_ingest_seconds_bucket{le="+Inf"}': "0+100x50",
    "tellerline_dispatcher_ingest_age_milliseconds": "12x50",
    "tellerline_dispatcher_lost_total": "0x50",
    "tellerline_dispatcher_poison_total": "0x50",
    'tellerline_expirer_late_seconds_bucket{le="0.1"}': "0+10x50",
    'tellerline_expirer_late_seconds_bucket{le="+Inf"}': "0+10x50",
}


class Row(NamedTuple):
    alert: str
    #: What is otherwise than in HEALTHY; None: the series is not there.
    changes: dict[str, str | None]
    minutes: int = 12  # when to look: after the alert's `for`


def without(role: str) -> dict[str, str | None]:
    """No replica of it is there: all series that it tells end."""
    return {name: None for name in HEALTHY if f'job="{role}"' in name or f'role="{role}"' in name}


#: What an installation without webhooks is without.
NO_WEBHOOKS = without("notifier") | {"tellerline_worker_webhooks": "0x50"}


def paused(state: str) -> dict[str, str | None]:
    return {f'tellerline_queue_state{{{Q},state="open"}}': None, f'tellerline_queue_state{{{Q},state="{state}"}}': "1x50",
            f"tellerline_queue_admitted_total{{{Q}}}": "9000x50"}


ROWS = [
    Row("TellerlineLineLong", {f"tellerline_queue_waiting{{{Q}}}": "10001x50"}),
    Row("TellerlineWaitsLong", {f"tellerline_queue_wait_seconds_sum{{{Q}}}": "0+18030x50"}),
    Row("TellerlinePausedForgotten", paused("paused"), 17),
    Row("TellerlinePausedForgotten", paused("over"), 17),
    Row("TellerlineCapacityZero", {f"tellerline_queue_capacity{{{Q}}}": "0x50",
                                   f"tellerline_queue_admitted_total{{{Q}}}": "9000x50"}),
    Row("TellerlineNobodyAdmitted", {f"tellerline_queue_admitted_total{{{Q}}}": "9000x50"}),
    Row("TellerlineNobodyAdmitted", {f"tellerline_queue_admitted_total{{{Q}}}": None}),
    Row("TellerlineNoShows", {f"tellerline_queue_no_shows_total{{{Q}}}": "0+28x50"}),
    Row("TellerlineVisitorsGiveUp", {f"tellerline_queue_gave_up_total{{{Q}}}": "0+16x50"}),
    Row("TellerlineOverAdmission", {f"tellerline_queue_over_admission{{{Q}}}": "1x50"}),
    Row("TellerlineEstimatesWrong", {f"tellerline_worker_queue_eta_late_total{{{Q}}}": "0+2x50"}, 17),
    Row("TellerlineWithoutFeedback", {f"tellerline_queue_without_feedback{{{Q}}}": "1x50"}),
    Row("TellerlineProgramMissing", {'up{job="expirer",instance="expirer-0"}': None,
                                     'up{job="expirer",instance="expirer-1"}': None}),
    Row("TellerlineProgramMissing", {'up{job="worker",instance="worker-0"}': "0x50",
                                     'up{job="worker",instance="worker-1"}': "0x50"}),
    Row("TellerlineProgramMissing", without("notifier")),
    # Where only the notifier knows the webhooks.
    Row("TellerlineProgramMissing", without("notifier") | {"tellerline_worker_webhooks": "0x50",
                                                           'tellerline_webhooks{role="notifier"}': "1x4 _x46"}),
    Row("TellerlineProgramMissing", without("notifier") | {'up{job="notifier",instance="notifier-0"}': "0x50"}),
    Row("TellerlineReplicaMissing", {'up{job="admitter",instance="admitter-1"}': "1x10 0x40"}),
    Row("TellerlineNotReady", {'tellerline_ready{role="dispatcher"}': "0x50"}),
    Row("TellerlineLeaseWithoutHolder", {'tellerline_admitter_queues{role="admitter",instance="admitter-0"}': "0x50"}),
    Row("TellerlineLeaseWithoutHolder", {'tellerline_notifier_queues{role="notifier",instance="notifier-0"}': "0x50"}),
    Row("TellerlineQueueDamaged", {'tellerline_expirer_queues_troubled{role="expirer",instance="expirer-0"}': "1x50"}),
    Row("TellerlineReloadRefused", {'tellerline_reload_failed{role="worker"}': "1x50"}),
    Row("TellerlineWorkerRestarts", {"tellerline_worker_restarts_total": "0+1x50"}),
    Row("TellerlineConnectionsFull", {"tellerline_worker_connections": "18000x50"}),
    Row("TellerlineStreamsFail", {"tellerline_worker_streams_failed_total": "0+6x50"}),
    Row("TellerlineAnswersFail", {"tellerline_worker_answers_failed_total": "0+60x50"}),
    Row("TellerlineJoinsRefused", {"tellerline_worker_joins_refused_total": "0+1x50"}),
    Row("TellerlineTicketsRefused", {"tellerline_worker_tickets_refused_total": "0+60x50"}),
    Row("TellerlineTicketKeysDiffer", {'tellerline_worker_ticket_key{fingerprint="bb"}': "2x50"}, 17),
    Row("TellerlineTokensNotVerified", {"tellerline_worker_verifications_timed_out_total": "0+1x50"}),
    Row("TellerlineProgramMissing", without("archiver") | {'tellerline_archive_connected{role="archiver"}': "1x4 _x46"}),
    Row("TellerlineArchiveBehind", {'tellerline_archive_behind_seconds{role="archiver"}': "121x50"}),
    Row("TellerlineArchiveIncomplete", {'tellerline_archive_missing{role="archiver"}': "1x50"}),
    Row("TellerlineArchiveDiffers", {'tellerline_archive_differences{role="archiver"}': "1x50"}),
    Row("TellerlineTrailDamaged", {'tellerline_archive_trails_damaged{role="archiver"}': "1x50"}),
    Row("TellerlineWebhookDead", {'tellerline_webhook_failing_seconds{role="notifier"}': "601x50"}),
    Row("TellerlineRedisSlow", {'tellerline_store_seconds_bucket{role="admitter",le="0.1"}': "0+90x50",
                                'tellerline_store_seconds_bucket{role="admitter",le="0.2"}': "0+100x50"}),
    Row("TellerlineRedisSlow", {'tellerline_worker_ingest_seconds_bucket{le="0.1"}': "0+90x50",
                                'tellerline_worker_ingest_seconds_bucket{le="0.2"}': "0+100x50"}),
    Row("TellerlineArrivalsNotNumbered", {"tellerline_dispatcher_ingest_age_milliseconds": "5001x50"}),
    Row("TellerlineJoinsLost", {"tellerline_dispatcher_lost_total": "0+1x50"}),
    Row("TellerlineJoinsLost", {"tellerline_dispatcher_poison_total": "0+1x50"}),
    Row("TellerlineRedisRefusesWrites", {"tellerline_worker_batches_refused_total": "0+1x50"}),
    Row("TellerlineRedisMemory", {"tellerline_worker_store_memory_bytes": "801x50"}),
    Row("TellerlineRedisNotWritten", {"tellerline_worker_store_not_written": "1x50"}),
    Row("TellerlineRedisWithoutFile", {"tellerline_worker_store_appendonly": "0x50"}, 17),
    Row("TellerlineSessionsEndLate", {'tellerline_expirer_late_seconds_bucket{le="0.1"}': "0x50",
                                      'tellerline_expirer_late_seconds_bucket{le="2"}': "0+10x50"}),
]


def series(changes: dict[str, str | None]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in (HEALTHY | changes).items() if values is not None]
