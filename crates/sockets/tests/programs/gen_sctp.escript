%% Erlang's gen_sctp: two ends in one machine, each with two addresses.
-mode(interpret).

%% kernel/include/inet_sctp.hrl belongs to another package than `escript`.
-record(sctp_initmsg, {num_ostreams, max_instreams, max_attempts, max_init_timeo}).
-record(sctp_event_subscribe,
        {data_io_event, association_event, address_event, send_failure_event, peer_error_event, shutdown_event,
         partial_delivery_event, adaptation_layer_event, authentication_event}).
-record(sctp_sndrcvinfo,
        {stream = 0, ssn, flags = [], ppid = 0, context = 0, timetolive = 0, tsn, cumtsn, assoc_id = 0}).
-record(sctp_assoc_change, {state, error, outbound_streams, inbound_streams, assoc_id}).
-record(sctp_paddr_change, {addr, state, error, assoc_id}).
-record(sctp_shutdown_event, {assoc_id}).
-record(sctp_status,
        {assoc_id, state, rwnd, unackdata, penddata, instrms, outstrms, fragmentation_point, primary}).
-record(sctp_paddrinfo, {assoc_id, address, state, cwnd, srtt, rto, mtu}).
-record(sctp_rtoinfo, {assoc_id = 0, initial, max, min}).
-record(sctp_assocparams,
        {assoc_id = 0, asocmaxrxt, number_peer_destinations, peer_rwnd, local_rwnd, cookie_life}).
-record(sctp_setadaptation, {adaptation_ind}).
-record(sctp_adaptation_event, {adaptation_ind, assoc_id}).
-record(sctp_prim, {assoc_id = 0, addr}).

-define(FIRST, {127, 0, 0, 1}).
-define(SECOND, {127, 0, 0, 2}).
-define(WAIT_MS, 20000).

main(_) ->
    Events = #sctp_event_subscribe{
        data_io_event = true, association_event = true, address_event = true, send_failure_event = true,
        peer_error_event = false, shutdown_event = true, partial_delivery_event = false,
        adaptation_layer_event = false, authentication_event = false},
    Both = [binary, {active, false}, {ip, ?FIRST}, {ip, ?SECOND}, {sctp_events, Events}, {sctp_nodelay, true},
            {sctp_initmsg, #sctp_initmsg{num_ostreams = 7, max_instreams = 9, max_attempts = 4, max_init_timeo = 0}}],
    {ok, Server} = gen_sctp:open(0, Both),
    ok = gen_sctp:listen(Server, true),
    {ok, {_, Port}} = inet:sockname(Server),
    {ok, Client} = gen_sctp:open(0, Both),
    {ok, Up} = gen_sctp:connect(Client, ?FIRST, Port, []),
    #sctp_assoc_change{state = comm_up, outbound_streams = 7, assoc_id = Near} = Up,
    #sctp_assoc_change{state = comm_up, assoc_id = Far} = event(Server, sctp_assoc_change),
    options(Client, Near, Port),
    messages(Client, Near, Server, Far),
    peeled(Client, Near, Server, Far),
    ended(Client, Server, Port),
    idle(Events),
    io:put_chars("done\n").

%% The next event of a kind; those of addresses may come between others.
event(Socket, Kind) ->
    case gen_sctp:recv(Socket, ?WAIT_MS) of
        {ok, {_, _, _, Event}} when element(1, Event) =:= Kind -> Event;
        {ok, {_, _, _, #sctp_paddr_change{}}} -> event(Socket, Kind)
    end.

%% The next message, with what is known about it.
message(Socket) ->
    case gen_sctp:recv(Socket, ?WAIT_MS) of
        {ok, {_, _, [Info], Data}} when is_binary(Data) -> {Info, Data};
        {ok, {_, _, _, #sctp_paddr_change{}}} -> message(Socket)
    end.

options(Client, Near, Port) ->
    {ok, [{sctp_status, Status}]} = inet:getopts(Client, [{sctp_status, #sctp_status{assoc_id = Near}}]),
    #sctp_status{state = established, outstrms = 7, primary = #sctp_paddrinfo{address = {_, Port}}} = Status,
    ok = inet:setopts(Client, [{sctp_rtoinfo, #sctp_rtoinfo{assoc_id = Near, initial = 500, max = 5000, min = 200}}]),
    {ok, [{sctp_rtoinfo, #sctp_rtoinfo{initial = 500, max = 5000, min = 200}}]} =
        inet:getopts(Client, [{sctp_rtoinfo, #sctp_rtoinfo{assoc_id = Near}}]),
    {ok, [{sctp_associnfo, #sctp_assocparams{number_peer_destinations = 2}}]} =
        inet:getopts(Client, [{sctp_associnfo, #sctp_assocparams{assoc_id = Near}}]),
    ok = inet:setopts(Client, [{sctp_primary_addr, #sctp_prim{assoc_id = Near, addr = {?SECOND, Port}}}]),
    {ok, Peers} = inet:peernames(Client, Near),
    [{?FIRST, Port}, {?SECOND, Port}] = lists:sort(Peers),
    {ok, Own} = inet:socknames(Client, Near),
    [{?FIRST, _}, {?SECOND, _}] = lists:sort(Own).

messages(Client, Near, Server, Far) ->
    Sizes = [1, 1000, 1452, 5000, 60000],
    Send = fun(Size) ->
        Info = #sctp_sndrcvinfo{stream = Size rem 7, ppid = Size, assoc_id = Near},
        ok = gen_sctp:send(Client, Info, binary:copy(<<(Size rem 256)>>, Size))
    end,
    lists:foreach(Send, Sizes),
    Receive = fun(Size) ->
        {#sctp_sndrcvinfo{stream = Stream, ppid = Size, assoc_id = Far}, Data} = message(Server),
        {Stream, Data} = {Size rem 7, binary:copy(<<(Size rem 256)>>, Size)}
    end,
    lists:foreach(Receive, Sizes),
    %% By the association and the stream alone, and without order.
    ok = gen_sctp:send(Server, Far, 3, <<"back">>),
    {#sctp_sndrcvinfo{stream = 3}, <<"back">>} = message(Client),
    Loose = #sctp_sndrcvinfo{stream = 1, flags = [unordered], assoc_id = Far},
    ok = gen_sctp:send(Server, Loose, <<"loose">>),
    {#sctp_sndrcvinfo{flags = [unordered]}, <<"loose">>} = message(Client),
    %% As messages to the process.
    ok = inet:setopts(Client, [{active, once}]),
    ok = gen_sctp:send(Server, Far, 0, <<"active">>),
    receive {sctp, Client, _, _, {_, <<"active">>}} -> ok after ?WAIT_MS -> error(nothing) end.

peeled(Client, Near, Server, Far) ->
    {ok, Own} = gen_sctp:peeloff(Server, Far),
    ok = gen_sctp:send(Client, Near, 0, <<"to its own socket">>),
    {_, <<"to its own socket">>} = message(Own),
    ok = gen_sctp:send(Own, Far, 0, <<"from there">>),
    {_, <<"from there">>} = message(Client),
    ok = gen_sctp:close(Own),
    #sctp_shutdown_event{} = event(Client, sctp_shutdown_event),
    #sctp_assoc_change{state = shutdown_comp} = event(Client, sctp_assoc_change).

ended(Client, Server, Port) ->
    {ok, Near} = gen_sctp:connectx_init(Client, [{?FIRST, Port}, {?SECOND, Port}], []),
    #sctp_assoc_change{state = comm_up, assoc_id = Near} = event(Client, sctp_assoc_change),
    #sctp_assoc_change{state = comm_up} = event(Server, sctp_assoc_change),
    ok = gen_sctp:eof(Client, #sctp_assoc_change{assoc_id = Near}),
    #sctp_shutdown_event{} = event(Server, sctp_shutdown_event),
    #sctp_assoc_change{state = shutdown_comp} = event(Server, sctp_assoc_change),
    #sctp_assoc_change{state = shutdown_comp} = event(Client, sctp_assoc_change),
    {ok, Again} = gen_sctp:connect(Client, ?SECOND, Port, []),
    #sctp_assoc_change{state = comm_up} = event(Server, sctp_assoc_change),
    ok = gen_sctp:abort(Client, Again),
    #sctp_assoc_change{state = comm_lost} = event(Server, sctp_assoc_change),
    #sctp_assoc_change{state = comm_lost} = event(Client, sctp_assoc_change),
    %% No socket listens on this port.
    {error, #sctp_assoc_change{state = cant_assoc}} = gen_sctp:connect(Client, ?FIRST, 9, []),
    ok = gen_sctp:close(Client),
    ok = gen_sctp:close(Server).

%% Options of a socket, and an association that ends because it is idle.
idle(Events) ->
    Told = Events#sctp_event_subscribe{adaptation_layer_event = true},
    Both = [binary, {active, false}, {ip, {127, 0, 0, 9}}, {sctp_events, Told}],
    {ok, Server} = gen_sctp:open(0, [{sctp_adaptation_layer, #sctp_setadaptation{adaptation_ind = 5}} | Both]),
    ok = gen_sctp:listen(Server, true),
    {ok, {_, Port}} = inet:sockname(Server),
    {ok, Client} = gen_sctp:open(0, [{sctp_autoclose, 1} | Both]),
    {ok, [{sctp_autoclose, 1}]} = inet:getopts(Client, [sctp_autoclose]),
    {ok, [{sctp_adaptation_layer, #sctp_setadaptation{adaptation_ind = 5}}]} =
        inet:getopts(Server, [{sctp_adaptation_layer, #sctp_setadaptation{}}]),
    {ok, #sctp_assoc_change{state = comm_up}} = gen_sctp:connect(Client, {127, 0, 0, 9}, Port, []),
    #sctp_adaptation_event{adaptation_ind = 5} = event(Client, sctp_adaptation_event),
    #sctp_assoc_change{state = shutdown_comp} = event(Client, sctp_assoc_change),
    ok = gen_sctp:close(Client),
    ok = gen_sctp:close(Server).
