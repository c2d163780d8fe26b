//! The rules of RFC 9260 that this binary tests with the simulator's preset, tested again with the
//! presets of sockets, towards a peer that announces nothing.

use std::panic::catch_unwind;

use ropewalk_engine::sctp::Preset;

use super::{
    cookies, data, errors, foreign, handshake, hostile, loss, primitives, reassembly, sack,
    shutdown, window, windows,
};
use crate::driver::under;

type Rule = (&'static str, fn());

/// Tests that do not depend on a preset's timers and windows, except two that take long.
const RULES: [Rule; 89] = [
    ("the_right_edge_of_the_window_moves_by_a_full_chunk_or_not_at_all", windows::the_right_edge_of_the_window_moves_by_a_full_chunk_or_not_at_all),
    ("no_chunk_is_cut_to_fit_a_small_window", windows::no_chunk_is_cut_to_fit_a_small_window),
    ("after_a_timeout_one_packet_is_on_its_way_until_something_is_acknowledged", errors::after_a_timeout_one_packet_is_on_its_way_until_something_is_acknowledged),
    ("any_chunk_that_is_acknowledged_clears_the_errors_of_the_association", errors::any_chunk_that_is_acknowledged_clears_the_errors_of_the_association),
    ("no_heartbeat_follows_a_shutdown_or_its_acknowledgement", errors::no_heartbeat_follows_a_shutdown_or_its_acknowledgement),
    ("an_init_ack_asks_for_no_more_streams_than_the_init_allows", cookies::an_init_ack_asks_for_no_more_streams_than_the_init_allows),
    ("a_cookie_does_not_show_the_tags_of_an_association_that_exists", cookies::a_cookie_does_not_show_the_tags_of_an_association_that_exists),
    ("a_cookie_ack_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat", cookies::a_cookie_ack_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat),
    ("a_cookie_confirms_the_address_that_the_init_ack_went_to_wherever_it_comes_from", cookies::a_cookie_confirms_the_address_that_the_init_ack_went_to_wherever_it_comes_from),
    ("what_finds_no_room_beside_the_cookie_waits_for_no_other_packet", cookies::what_finds_no_room_beside_the_cookie_waits_for_no_other_packet),
    ("until_the_cookie_is_acknowledged_chunks_that_are_not_known_are_not_reported", cookies::until_the_cookie_is_acknowledged_chunks_that_are_not_known_are_not_reported),
    ("a_cookie_echo_begins_a_packet_whatever_else_waits", cookies::a_cookie_echo_begins_a_packet_whatever_else_waits),
    ("a_cookie_longer_than_a_packet_is_echoed_whole_for_ip_to_cut", cookies::a_cookie_longer_than_a_packet_is_echoed_whole_for_ip_to_cut),
    ("a_cookie_echo_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat_or_not_at_all", cookies::a_cookie_echo_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat_or_not_at_all),
    ("heartbeats_of_an_idle_path_stop_and_go_on_as_the_user_says", primitives::heartbeats_of_an_idle_path_stop_and_go_on_as_the_user_says),
    ("a_path_may_have_a_heartbeat_interval_of_its_own", primitives::a_path_may_have_a_heartbeat_interval_of_its_own),
    ("without_heartbeats_an_idle_path_keeps_the_status_that_it_has", primitives::without_heartbeats_an_idle_path_keeps_the_status_that_it_has),
    ("addresses_are_confirmed_and_doubted_paths_asked_whether_heartbeats_are_wanted_or_not", primitives::addresses_are_confirmed_and_doubted_paths_asked_whether_heartbeats_are_wanted_or_not),
    ("a_heartbeat_leaves_at_once_when_the_user_asks_for_it", primitives::a_heartbeat_leaves_at_once_when_the_user_asks_for_it),
    ("no_heartbeat_is_sent_for_a_user_where_none_may_leave", primitives::no_heartbeat_is_sent_for_a_user_where_none_may_leave),
    ("who_asks_often_neither_hides_a_silence_nor_makes_one_up", primitives::who_asks_often_neither_hides_a_silence_nor_makes_one_up),
    ("other_limits_of_the_timeout_hold_from_now_on", primitives::other_limits_of_the_timeout_hold_from_now_on),
    ("other_limits_of_failure_hold_from_now_on", primitives::other_limits_of_failure_hold_from_now_on),
    ("another_pace_of_sacks_holds_from_now_on", primitives::another_pace_of_sacks_holds_from_now_on),
    ("another_burst_holds_from_now_on", primitives::another_burst_holds_from_now_on),
    ("other_limits_of_the_setup_hold_from_now_on", primitives::other_limits_of_the_setup_hold_from_now_on),
    ("parameters_that_make_no_sense_are_refused_and_change_nothing", primitives::parameters_that_make_no_sense_are_refused_and_change_nothing),
    ("what_the_user_has_set_outlives_a_restart_of_the_peer", primitives::what_the_user_has_set_outlives_a_restart_of_the_peer),
    ("a_full_queue_is_no_hindrance_to_a_heartbeat", primitives::a_full_queue_is_no_hindrance_to_a_heartbeat),
    ("a_shutdown_takes_nothing_back_though_it_reports_no_gap", sack::a_shutdown_takes_nothing_back_though_it_reports_no_gap),
    ("messages_of_any_size_come_out_as_they_went_in", data::messages_of_any_size_come_out_as_they_went_in),
    ("small_messages_travel_together_and_large_ones_are_cut", data::small_messages_travel_together_and_large_ones_are_cut),
    ("a_hole_in_one_stream_holds_up_no_other", data::a_hole_in_one_stream_holds_up_no_other),
    ("unordered_messages_pass_a_hole_and_fragments_of_both_kinds_mix", data::unordered_messages_pass_a_hole_and_fragments_of_both_kinds_mix),
    ("a_stream_that_the_peer_does_not_have_ends_nothing", data::a_stream_that_the_peer_does_not_have_ends_nothing),
    ("tsns_wrap_in_the_midst_of_losses_without_a_seam", data::tsns_wrap_in_the_midst_of_losses_without_a_seam),
    ("chunks_that_were_not_agreed_on_are_skipped_or_reported_as_their_highest_bits_say", foreign::chunks_that_were_not_agreed_on_are_skipped_or_reported_as_their_highest_bits_say),
    ("very_many_unknown_chunks_and_long_ones_are_answered_with_little", foreign::very_many_unknown_chunks_and_long_ones_are_answered_with_little),
    ("a_heartbeat_comes_back_as_it_was_and_not_if_it_is_longer_than_a_packet", foreign::a_heartbeat_comes_back_as_it_was_and_not_if_it_is_longer_than_a_packet),
    ("data_on_a_stream_that_does_not_exist_is_acknowledged_and_reported_and_not_delivered", foreign::data_on_a_stream_that_does_not_exist_is_acknowledged_and_reported_and_not_delivered),
    ("an_init_ack_that_cannot_be_used_is_refused_by_cause", foreign::an_init_ack_that_cannot_be_used_is_refused_by_cause),
    ("a_cookie_without_a_byte_is_echoed", foreign::a_cookie_without_a_byte_is_echoed),
    ("what_an_init_ack_has_that_is_not_known_is_reported_beside_the_cookie", foreign::what_an_init_ack_has_that_is_not_known_is_reported_beside_the_cookie),
    ("a_shutdown_ack_for_an_end_that_only_sets_up_is_out_of_the_blue", foreign::a_shutdown_ack_for_an_end_that_only_sets_up_is_out_of_the_blue),
    ("an_init_with_a_host_name_is_refused_by_an_association_too", foreign::an_init_with_a_host_name_is_refused_by_an_association_too),
    ("four_packets_set_an_association_up", handshake::four_packets_set_an_association_up),
    ("any_lost_packet_of_the_handshake_is_made_good_by_t1", handshake::any_lost_packet_of_the_handshake_is_made_good_by_t1),
    ("t1_doubles_goes_round_the_addresses_and_gives_up_after_max_init_retransmits", handshake::t1_doubles_goes_round_the_addresses_and_gives_up_after_max_init_retransmits),
    ("an_init_is_answered_without_anything_kept", handshake::an_init_is_answered_without_anything_kept),
    ("a_bad_init_gets_no_answer", handshake::a_bad_init_gets_no_answer),
    ("an_init_that_asks_for_the_impossible_is_refused_in_every_state_and_changes_none", handshake::an_init_that_asks_for_the_impossible_is_refused_in_every_state_and_changes_none),
    ("a_duplicate_cookie_echo_is_acknowledged_again_and_changes_nothing", handshake::a_duplicate_cookie_echo_is_acknowledged_again_and_changes_nothing),
    ("a_forged_cookie_is_dropped_and_a_stale_one_is_reported_and_replaced", handshake::a_forged_cookie_is_dropped_and_a_stale_one_is_reported_and_replaced),
    ("a_cookie_that_grew_old_on_the_way_is_good_for_the_association_it_made", handshake::a_cookie_that_grew_old_on_the_way_is_good_for_the_association_it_made),
    ("two_ends_that_open_at_once_become_one_association", handshake::two_ends_that_open_at_once_become_one_association),
    ("an_init_for_an_association_that_is_up_changes_nothing", handshake::an_init_for_an_association_that_is_up_changes_nothing),
    ("data_waits_for_the_cookie_and_starts_with_the_announced_tsn", handshake::data_waits_for_the_cookie_and_starts_with_the_announced_tsn),
    ("a_wrong_tag_makes_every_chunk_a_nothing", hostile::a_wrong_tag_makes_every_chunk_a_nothing),
    ("acknowledging_what_was_never_sent_ends_the_association", hostile::acknowledging_what_was_never_sent_ends_the_association),
    ("gap_blocks_that_make_no_sense_are_not_believed", hostile::gap_blocks_that_make_no_sense_are_not_believed),
    ("gap_blocks_that_report_what_was_never_sent_end_the_association", hostile::gap_blocks_that_report_what_was_never_sent_end_the_association),
    ("data_without_data_ends_the_association", hostile::data_without_data_ends_the_association),
    ("a_peer_that_ignores_the_shut_window_gets_nothing_in", hostile::a_peer_that_ignores_the_shut_window_gets_nothing_in),
    ("a_full_buffer_that_gives_up_a_chunk_delivers_it_when_it_comes_again", hostile::a_full_buffer_that_gives_up_a_chunk_delivers_it_when_it_comes_again),
    ("shutdown_chunks_out_of_place_end_nothing", hostile::shutdown_chunks_out_of_place_end_nothing),
    ("losses_of_one_window_halve_it_once_and_are_repaired_without_a_timeout", loss::losses_of_one_window_halve_it_once_and_are_repaired_without_a_timeout),
    ("a_fast_retransmit_leaves_at_once_though_the_window_is_full", loss::a_fast_retransmit_leaves_at_once_though_the_window_is_full),
    ("small_chunks_that_were_lost_travel_together_again", loss::small_chunks_that_were_lost_travel_together_again),
    ("plain_sctp_retransmits_by_timer_on_the_alternate_and_returns_to_the_primary", loss::plain_sctp_retransmits_by_timer_on_the_alternate_and_returns_to_the_primary),
    ("the_unsplit_rule_sends_each_chunk_again_once", loss::the_unsplit_rule_sends_each_chunk_again_once),
    ("a_message_longer_than_the_receive_buffer_arrives_in_parts", reassembly::a_message_longer_than_the_receive_buffer_arrives_in_parts),
    ("a_message_that_fits_is_delivered_whole_however_slow_the_reader", reassembly::a_message_that_fits_is_delivered_whole_however_slow_the_reader),
    ("fragments_that_contradict_each_other_end_the_association", reassembly::fragments_that_contradict_each_other_end_the_association),
    ("fragments_that_agree_are_taken_in_any_order", reassembly::fragments_that_agree_are_taken_in_any_order),
    ("the_first_data_of_an_association_is_acknowledged_at_once", sack::the_first_data_of_an_association_is_acknowledged_at_once),
    ("a_gap_is_reported_at_once_in_plain_sctp_until_it_is_filled", sack::a_gap_is_reported_at_once_in_plain_sctp_until_it_is_filled),
    ("duplicates_and_the_immediate_bit_are_answered_at_once", sack::duplicates_and_the_immediate_bit_are_answered_at_once),
    ("three_packets_end_an_association_after_its_data", shutdown::three_packets_end_an_association_after_its_data),
    ("any_lost_packet_of_the_shutdown_is_made_good", shutdown::any_lost_packet_of_the_shutdown_is_made_good),
    ("ends_that_shut_down_at_once_both_end_well_whatever_is_lost", shutdown::ends_that_shut_down_at_once_both_end_well_whatever_is_lost),
    ("a_peer_that_has_much_to_flush_is_waited_for", shutdown::a_peer_that_has_much_to_flush_is_waited_for),
    ("data_in_shutdown_sent_is_answered_by_one_packet_with_shutdown_and_sack", shutdown::data_in_shutdown_sent_is_answered_by_one_packet_with_shutdown_and_sack),
    ("a_shutdown_that_nobody_answers_ends_too", shutdown::a_shutdown_that_nobody_answers_ends_too),
    ("an_abort_tells_the_peer_and_leaves_nothing_behind", shutdown::an_abort_tells_the_peer_and_leaves_nothing_behind),
    ("a_reader_that_wakes_up_reopens_the_window_even_if_the_update_is_lost", window::a_reader_that_wakes_up_reopens_the_window_even_if_the_update_is_lost),
    ("a_shut_window_is_probed_with_one_chunk_at_a_time_for_as_long_as_it_takes", window::a_shut_window_is_probed_with_one_chunk_at_a_time_for_as_long_as_it_takes),
    ("the_receive_buffer_never_holds_more_than_it_may", window::the_receive_buffer_never_holds_more_than_it_may),
    ("chunks_that_the_peer_gives_back_are_sent_again", window::chunks_that_the_peer_gives_back_are_sent_again),
    ("a_sack_that_comes_late_changes_nothing", window::a_sack_that_comes_late_changes_nothing),
];

/// Tests of the RFC's own timers and bursts, which `live` replaces.
const RULES_OF_THE_RFC: [Rule; 3] = [
    ("sending_alone_is_an_occasion_for_a_burst", data::sending_alone_is_an_occasion_for_a_burst),
    (
        "the_timer_backs_off_and_the_window_starts_from_one_chunk",
        loss::the_timer_backs_off_and_the_window_starts_from_one_chunk,
    ),
    (
        "every_second_packet_is_acknowledged_at_once_and_a_single_one_after_200_ms",
        sack::every_second_packet_is_acknowledged_at_once_and_a_single_one_after_200_ms,
    ),
];

fn hold(preset: Preset, rules: &[Rule]) {
    let broken =
        |(name, rule): &Rule| catch_unwind(|| under(preset, *rule)).is_err().then_some(*name);
    let broken: Vec<_> = rules.iter().filter_map(broken).collect();
    assert!(broken.is_empty(), "{preset:?}: {broken:#?}");
}

#[test]
fn the_rules_hold_under_the_profile_live() {
    hold(Preset::Live, &RULES);
}

#[test]
fn the_rules_hold_under_the_profile_rfc9260() {
    hold(Preset::LiveRfc9260, &RULES);
    hold(Preset::LiveRfc9260, &RULES_OF_THE_RFC);
}
