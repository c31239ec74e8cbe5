//! Identifiers: which a program may keep, and fresh ones.

use std::collections::{BTreeMap, BTreeSet};

/// Keywords of C and C++, macros that compilers predefine, what `<stdint.h>` and `<stdbool.h>`
/// define, and the fixed names of the emitter itself.
const RESERVED: &str = "
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq
    i386 linux unix
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    int_least8_t int_least16_t int_least32_t int_least64_t
    uint_least8_t uint_least16_t uint_least32_t uint_least64_t
    int_fast8_t int_fast16_t int_fast32_t int_fast64_t
    uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t
    intptr_t uintptr_t intmax_t uintmax_t
    begin buffers end variables";

/// How the names of helpers start.
const HELPERS: &str = "f16_to_ bf16_to_ f32_to_ f64_to_ f32_from_ f64_from_ atomic_";

/// Functions of the C library that compilers know, and `main`: a kernel of such a name would be
/// a declaration that conflicts. (Parameters may shadow them.)
const LIBRARY: &str = "
    main
    abort abs aligned_alloc a64l atoi calloc exit free imaxabs labs llabs malloc realloc strtod
    strtof strtol strtold strtoll strtoul strtoull vfork va_start
    fopen fprintf fputc fputs fread fscanf fwrite printf putc putchar puts scanf snprintf sprintf
    sscanf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    isalnum isalpha isblank iscntrl isdigit isgraph isinf islower isnan isprint ispunct isspace
    isupper isxdigit iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint
    iswpunct iswspace iswupper iswxdigit tolower toupper towlower towupper
    memchr memcmp memcpy memmove memset strcat strchr strcmp strcpy strcspn strerror strftime
    strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm tzname
    wcschr wcscmp wcslen wcsncmp wmemchr wmemcmp wmemcpy wmemmove
    feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept fesetenv
    fesetexceptflag fesetround fetestexcept feupdateenv";

/// Functions of the C library that come as `f`, `ff` and `fl`.
const LIBRARY_MATH: &str = "
    acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt
    ccos ccosh ceil cexp cimag clog conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan
    ctanh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma
    llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward
    pow remainder remquo rint round roundeven scalbln scalbn sin sinh sqrt tan tanh tgamma trunc";

/// The identifiers of one text.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    next: BTreeMap<String, usize>,
}

impl Names {
    /// The name of a kernel: `name` with as few underscores behind it as make it usable.
    pub(crate) fn kernel(&mut self, name: &str) -> String {
        self.take(name, |name| is_reserved(name) || is_library(name))
    }

    /// The name of anything else: `name` with as few underscores behind it as make it unique.
    pub(crate) fn keep(&mut self, name: &str) -> String {
        self.take(name, is_reserved)
    }

    /// Keeps others from being called `name`.
    pub(crate) fn reserve(&mut self, name: String) {
        self.taken.insert(name);
    }

    /// The first of `PREFIX0`, `PREFIX1`, … that is not taken.
    pub(crate) fn number(&mut self, prefix: &str) -> String {
        let next = self.next.entry(prefix.to_owned()).or_default();
        loop {
            let name = format!("{prefix}{next}");
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }

    fn take(&mut self, name: &str, unusable: impl Fn(&str) -> bool) -> String {
        let mut name = name.to_owned();
        while unusable(&name) || self.taken.contains(&name) {
            name.push('_');
        }
        self.taken.insert(name.clone());
        name
    }
}

/// Whether `name` is an identifier in every dialect, but for reserved ones.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

fn is_reserved(name: &str) -> bool {
    // Such as INT32_MAX and UINT64_C.
    let macro_of_stdint = ["_MAX", "_MIN", "_C", "_WIDTH"].iter().any(|end| name.ends_with(end))
        && ["INT", "UINT", "PTRDIFF", "SIG_ATOMIC", "SIZE", "WCHAR", "WINT"]
            .iter()
            .any(|start| name.starts_with(start));
    // C11 section 7.1.3: the implementation's own, such as `_Bool` and `__asm__`. Three underscores
    // behind it are no guarantee, but no compiler here defines such a name.
    let mut bytes = name.bytes();
    let of_implementation = bytes.next() == Some(b'_')
        && bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_uppercase())
        && !name.ends_with("___");
    // No helper ends so.
    let helper = !name.ends_with('_')
        && HELPERS.split_ascii_whitespace().any(|start| name.starts_with(start));
    helper || contains(RESERVED, name) || macro_of_stdint || of_implementation
}

fn is_library(name: &str) -> bool {
    let base = name.strip_suffix(['f', 'l']).unwrap_or(name);
    contains(LIBRARY, name) || contains(LIBRARY_MATH, name) || contains(LIBRARY_MATH, base)
}

fn contains(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|w| w == word)
}
