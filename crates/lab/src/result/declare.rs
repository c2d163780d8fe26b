//! The macro that declares a part of the results.

/// Declares a struct of results: each field with its meaning (the doc comment), name, type and presentation
/// ([`Show`](super::figure::Show)). A field may be a part with its own figures, declared in braces, which
/// also yields a struct. The macro yields the structs and their list of figures, `FIGURES`.
macro_rules! results {
    (
        $(#[doc = $about:literal])+
        struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[omit = $omit:literal])?
                $key:ident: $kind:ident $(<$arg:ty>)? $({
                    $(
                        $(#[doc = $part_doc:literal])+
                        $part_key:ident: $part_kind:ident = $part_show:expr;
                    )+
                })? = $show:expr;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                $(#[serde(default, skip_serializing_if = $omit)])?
                pub $key: $kind $(<$arg>)?,
            )+
        }

        impl $name {
            /// Every figure, in the order of the document. A part is followed by its figures.
            pub const FIGURES: &'static [Figure<Self>] = &[
                $(
                    Figure {
                        key: stringify!($key),
                        in_document: true,
                        omitted_if_zero: results!(@given $($omit)?),
                        kind: <$kind $(<$arg>)? as Value>::TYPE,
                        show: $show,
                        of: |result| Value::number(&result.$key),
                        meaning: concat!($($doc),+),
                    },
                    $($(
                        Figure {
                            key: concat!(stringify!($key), ".", stringify!($part_key)),
                            in_document: true,
                            omitted_if_zero: false,
                            kind: <$part_kind as Value>::TYPE,
                            show: $part_show.of($show.group),
                            of: |result| Value::number(&result.$key.$part_key),
                            meaning: concat!($($part_doc),+),
                        },
                    )+)?
                )+
            ];
        }

        $($(
            #[doc = concat!("`", stringify!($key), "` of a [`", stringify!($name), "`].")]
            #[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
            pub struct $kind {
                $(
                    $(#[doc = $part_doc])+
                    pub $part_key: $part_kind,
                )+
            }

            impl Value for $kind {
                const TYPE: Type = Type::Part(stringify!($kind));
            }
        )?)+
    };
    (@given) => { false };
    (@given $omit:literal) => { true };
}

pub(super) use results;
