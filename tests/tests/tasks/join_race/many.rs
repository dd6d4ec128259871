//! As many branches as `tokio::select!` takes, in each form.

use super::*;

/// Ready at once if it is the one that is looked for.
async fn only(n: usize, wanted: usize) -> usize {
    if n == wanted { n } else { pending().await }
}

#[test]
fn a_race_has_room_for_64_futures() {
    run(async {
        let race = async |w| {
            race! {
                only(0, w), only(1, w), only(2, w), only(3, w), only(4, w), only(5, w), only(6, w), only(7, w),
                only(8, w), only(9, w), only(10, w), only(11, w), only(12, w), only(13, w), only(14, w), only(15, w),
                only(16, w), only(17, w), only(18, w), only(19, w), only(20, w), only(21, w), only(22, w),
                only(23, w), only(24, w), only(25, w), only(26, w), only(27, w), only(28, w), only(29, w),
                only(30, w), only(31, w), only(32, w), only(33, w), only(34, w), only(35, w), only(36, w),
                only(37, w), only(38, w), only(39, w), only(40, w), only(41, w), only(42, w), only(43, w),
                only(44, w), only(45, w), only(46, w), only(47, w), only(48, w), only(49, w), only(50, w),
                only(51, w), only(52, w), only(53, w), only(54, w), only(55, w), only(56, w), only(57, w),
                only(58, w), only(59, w), only(60, w), only(61, w), only(62, w), only(63, w),
            }
        };
        for wanted in [0, 1, 63] {
            assert_eq!(race(wanted).await, wanted);
        }
    });
}

#[test]
fn a_race_has_room_for_64_arms() {
    run(async {
        let race = async |w| {
            race! {
                biased;
                0 = only(0, w) => 0, 1 = only(1, w) => 1, 2 = only(2, w) => 2, 3 = only(3, w) => 3,
                4 = only(4, w) => 4, 5 = only(5, w) => 5, 6 = only(6, w) => 6, 7 = only(7, w) => 7,
                8 = only(8, w) => 8, 9 = only(9, w) => 9, 10 = only(10, w) => 10, 11 = only(11, w) => 11,
                12 = only(12, w) => 12, 13 = only(13, w) => 13, 14 = only(14, w) => 14, 15 = only(15, w) => 15,
                16 = only(16, w) => 16, 17 = only(17, w) => 17, 18 = only(18, w) => 18, 19 = only(19, w) => 19,
                20 = only(20, w) => 20, 21 = only(21, w) => 21, 22 = only(22, w) => 22, 23 = only(23, w) => 23,
                24 = only(24, w) => 24, 25 = only(25, w) => 25, 26 = only(26, w) => 26, 27 = only(27, w) => 27,
                28 = only(28, w) => 28, 29 = only(29, w) => 29, 30 = only(30, w) => 30, 31 = only(31, w) => 31,
                32 = only(32, w) => 32, 33 = only(33, w) => 33, 34 = only(34, w) => 34, 35 = only(35, w) => 35,
                36 = only(36, w) => 36, 37 = only(37, w) => 37, 38 = only(38, w) => 38, 39 = only(39, w) => 39,
                40 = only(40, w) => 40, 41 = only(41, w) => 41, 42 = only(42, w) => 42, 43 = only(43, w) => 43,
                44 = only(44, w) => 44, 45 = only(45, w) => 45, 46 = only(46, w) => 46, 47 = only(47, w) => 47,
                48 = only(48, w) => 48, 49 = only(49, w) => 49, 50 = only(50, w) => 50, 51 = only(51, w) => 51,
                52 = only(52, w) => 52, 53 = only(53, w) => 53, 54 = only(54, w) => 54, 55 = only(55, w) => 55,
                56 = only(56, w) => 56, 57 = only(57, w) => 57, 58 = only(58, w) => 58, 59 = only(59, w) => 59,
                60 = only(60, w) => 60, 61 = only(61, w) => 61, 62 = only(62, w) => 62, 63 = only(63, w) => 63,
                else => 64,
            }
        };
        for wanted in [0, 1, 63] {
            assert_eq!(race(wanted).await, wanted);
        }
    });
}

#[test]
fn a_race_has_room_for_64_arms_with_blocks_and_conditions() {
    // A task, so that it is `Send` too.
    let body = async {
        for wanted in [0, 1, 63, 64] {
            let (w, mut won) = (wanted, 64);
            race! {
                _ = ready(()), if w == 0 => { won = 0 } _ = ready(()), if w == 1 => { won = 1 }
                _ = ready(()), if w == 2 => { won = 2 } _ = ready(()), if w == 3 => { won = 3 }
                _ = ready(()), if w == 4 => { won = 4 } _ = ready(()), if w == 5 => { won = 5 }
                _ = ready(()), if w == 6 => { won = 6 } _ = ready(()), if w == 7 => { won = 7 }
                _ = ready(()), if w == 8 => { won = 8 } _ = ready(()), if w == 9 => { won = 9 }
                _ = ready(()), if w == 10 => { won = 10 } _ = ready(()), if w == 11 => { won = 11 }
                _ = ready(()), if w == 12 => { won = 12 } _ = ready(()), if w == 13 => { won = 13 }
                _ = ready(()), if w == 14 => { won = 14 } _ = ready(()), if w == 15 => { won = 15 }
                _ = ready(()), if w == 16 => { won = 16 } _ = ready(()), if w == 17 => { won = 17 }
                _ = ready(()), if w == 18 => { won = 18 } _ = ready(()), if w == 19 => { won = 19 }
                _ = ready(()), if w == 20 => { won = 20 } _ = ready(()), if w == 21 => { won = 21 }
                _ = ready(()), if w == 22 => { won = 22 } _ = ready(()), if w == 23 => { won = 23 }
                _ = ready(()), if w == 24 => { won = 24 } _ = ready(()), if w == 25 => { won = 25 }
                _ = ready(()), if w == 26 => { won = 26 } _ = ready(()), if w == 27 => { won = 27 }
                _ = ready(()), if w == 28 => { won = 28 } _ = ready(()), if w == 29 => { won = 29 }
                _ = ready(()), if w == 30 => { won = 30 } _ = ready(()), if w == 31 => { won = 31 }
                _ = ready(()), if w == 32 => { won = 32 } _ = ready(()), if w == 33 => { won = 33 }
                _ = ready(()), if w == 34 => { won = 34 } _ = ready(()), if w == 35 => { won = 35 }
                _ = ready(()), if w == 36 => { won = 36 } _ = ready(()), if w == 37 => { won = 37 }
                _ = ready(()), if w == 38 => { won = 38 } _ = ready(()), if w == 39 => { won = 39 }
                _ = ready(()), if w == 40 => { won = 40 } _ = ready(()), if w == 41 => { won = 41 }
                _ = ready(()), if w == 42 => { won = 42 } _ = ready(()), if w == 43 => { won = 43 }
                _ = ready(()), if w == 44 => { won = 44 } _ = ready(()), if w == 45 => { won = 45 }
                _ = ready(()), if w == 46 => { won = 46 } _ = ready(()), if w == 47 => { won = 47 }
                _ = ready(()), if w == 48 => { won = 48 } _ = ready(()), if w == 49 => { won = 49 }
                _ = ready(()), if w == 50 => { won = 50 } _ = ready(()), if w == 51 => { won = 51 }
                _ = ready(()), if w == 52 => { won = 52 } _ = ready(()), if w == 53 => { won = 53 }
                _ = ready(()), if w == 54 => { won = 54 } _ = ready(()), if w == 55 => { won = 55 }
                _ = ready(()), if w == 56 => { won = 56 } _ = ready(()), if w == 57 => { won = 57 }
                _ = ready(()), if w == 58 => { won = 58 } _ = ready(()), if w == 59 => { won = 59 }
                _ = ready(()), if w == 60 => { won = 60 } _ = ready(()), if w == 61 => { won = 61 }
                _ = ready(()), if w == 62 => { won = 62 } _ = ready(()), if w == 63 => { won = 63 }
                else => {}
            }
            assert_eq!(won, wanted);
        }
    };
    run(async { mini::spawn(body).await.unwrap() });
}

#[test]
fn a_join_has_room_for_64_branches() {
    let body = async {
        let all = join! {
            after(0, 0), maybe after(0, 1), after(0, 2), maybe after(0, 3), after(0, 4), maybe after(0, 5),
            after(0, 6), maybe after(0, 7), after(0, 8), maybe after(0, 9), after(0, 10), maybe after(0, 11),
            after(0, 12), maybe after(0, 13), after(0, 14), maybe after(0, 15), after(0, 16), maybe after(0, 17),
            after(0, 18), maybe after(0, 19), after(0, 20), maybe after(0, 21), after(0, 22), maybe after(0, 23),
            after(0, 24), maybe after(0, 25), after(0, 26), maybe after(0, 27), after(0, 28), maybe after(0, 29),
            after(0, 30), maybe after(0, 31), after(0, 32), maybe after(0, 33), after(0, 34), maybe after(0, 35),
            after(0, 36), maybe after(0, 37), after(0, 38), maybe after(0, 39), after(0, 40), maybe after(0, 41),
            after(0, 42), maybe after(0, 43), after(0, 44), maybe after(0, 45), after(0, 46), maybe after(0, 47),
            after(0, 48), maybe after(0, 49), after(0, 50), maybe after(0, 51), after(0, 52), maybe after(0, 53),
            after(0, 54), maybe after(0, 55), after(0, 56), maybe after(0, 57), after(0, 58), maybe after(0, 59),
            after(0, 60), maybe after(0, 61), after(0, 62), maybe after(0, 63),
        };
        assert_eq!((all.0, all.1, all.62, all.63), (0, Some(1), 62, Some(63)));
        let all = try_join! {
            ready(Ok::<_, ()>(0)), ready(Ok::<_, ()>(1)), ready(Ok::<_, ()>(2)), ready(Ok::<_, ()>(3)),
            ready(Ok::<_, ()>(4)), ready(Ok::<_, ()>(5)), ready(Ok::<_, ()>(6)), ready(Ok::<_, ()>(7)),
            ready(Ok::<_, ()>(8)), ready(Ok::<_, ()>(9)), ready(Ok::<_, ()>(10)), ready(Ok::<_, ()>(11)),
            ready(Ok::<_, ()>(12)), ready(Ok::<_, ()>(13)), ready(Ok::<_, ()>(14)), ready(Ok::<_, ()>(15)),
            ready(Ok::<_, ()>(16)), ready(Ok::<_, ()>(17)), ready(Ok::<_, ()>(18)), ready(Ok::<_, ()>(19)),
            ready(Ok::<_, ()>(20)), ready(Ok::<_, ()>(21)), ready(Ok::<_, ()>(22)), ready(Ok::<_, ()>(23)),
            ready(Ok::<_, ()>(24)), ready(Ok::<_, ()>(25)), ready(Ok::<_, ()>(26)), ready(Ok::<_, ()>(27)),
            ready(Ok::<_, ()>(28)), ready(Ok::<_, ()>(29)), ready(Ok::<_, ()>(30)), ready(Ok::<_, ()>(31)),
            ready(Ok::<_, ()>(32)), ready(Ok::<_, ()>(33)), ready(Ok::<_, ()>(34)), ready(Ok::<_, ()>(35)),
            ready(Ok::<_, ()>(36)), ready(Ok::<_, ()>(37)), ready(Ok::<_, ()>(38)), ready(Ok::<_, ()>(39)),
            ready(Ok::<_, ()>(40)), ready(Ok::<_, ()>(41)), ready(Ok::<_, ()>(42)), ready(Ok::<_, ()>(43)),
            ready(Ok::<_, ()>(44)), ready(Ok::<_, ()>(45)), ready(Ok::<_, ()>(46)), ready(Ok::<_, ()>(47)),
            ready(Ok::<_, ()>(48)), ready(Ok::<_, ()>(49)), ready(Ok::<_, ()>(50)), ready(Ok::<_, ()>(51)),
            ready(Ok::<_, ()>(52)), ready(Ok::<_, ()>(53)), ready(Ok::<_, ()>(54)), ready(Ok::<_, ()>(55)),
            ready(Ok::<_, ()>(56)), ready(Ok::<_, ()>(57)), ready(Ok::<_, ()>(58)), ready(Ok::<_, ()>(59)),
            ready(Ok::<_, ()>(60)), ready(Ok::<_, ()>(61)), ready(Ok::<_, ()>(62)), ready(Ok::<_, ()>(63)),
        };
        let all = all.unwrap();
        assert_eq!((all.0, all.1, all.62, all.63), (0, 1, 62, 63));
    };
    run(async { mini::spawn(body).await.unwrap() });
}
