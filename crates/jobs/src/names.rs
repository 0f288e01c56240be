//! Made-up names of pages, each from its rank alone and no two the same. It must not know who likes them.

/// How many names there are.
pub const COUNT: u32 = 50_000;

/// The name of the page of that rank, from 1 to [`COUNT`], written behind what `name` holds.
///
/// Neighbouring ranks are of different kinds; within a kind, a stride through all its combinations keeps neighbours
/// unlike. A stride that has no divisor in common with their number meets each of them once, so that no two ranks have
/// one name.
pub fn write(rank: u32, name: &mut String) {
    let pieces = KINDS[rank as usize % KINDS.len()];
    let combinations: u64 = lists(pieces).map(|list| list.len() as u64).product();
    let mut left = (u64::from(rank) / KINDS.len() as u64 + 1) * STRIDE % combinations;
    for piece in pieces {
        match piece {
            Text(text) => name.push_str(text),
            Any(list) => {
                name.push_str(list[(left % list.len() as u64) as usize]);
                left /= list.len() as u64;
            }
        }
    }
}

/// A prime far from any product of the lists' lengths.
const STRIDE: u64 = 1_000_003;

enum Piece {
    Text(&'static str),
    Any(&'static [&'static str]),
}

use Piece::{Any, Text};
use lists::*;

fn lists(pieces: &[Piece]) -> impl Iterator<Item = &'static [&'static str]> {
    pieces.iter().filter_map(|piece| match piece {
        Text(_) => None,
        Any(list) => Some(*list),
    })
}

/// What pages are about. No kind can say what another says, and each has more combinations than ranks.
const KINDS: &[&[Piece]] = &[
    &[Any(FIRST), Text(" "), Any(LAST)],
    &[Text("The "), Any(ADJECTIVES), Text(" "), Any(CREATURES)],
    &[Any(TOWN), Any(TOWN_END), Text(" "), Any(CREATURES)],
    &[Any(ADJECTIVES), Text(" "), Any(FOOD), Text(" "), Any(DISH)],
    &[Any(FIRST), Text(" & the "), Any(ADJECTIVES), Text(" "), Any(CREATURES)],
    &[Any(DOING), Text(" "), Any(THINGS)],
    &[Text("The "), Any(ROLE), Text(" of "), Any(TOWN), Any(TOWN_END)],
    &[Any(SOUND), Any(ECHO), Any(ECHO)],
    &[Any(FIRST), Text(" "), Any(PARTICLE), Any(LAST)],
    &[Text("I ♥ "), Any(THINGS), Text(" "), Any(WHEN)],
    &[Any(FIRST), Text("'s "), Any(ADJECTIVES), Text(" "), Any(SHOW)],
    &[Any(LAST), Text(" & "), Any(LAST), Text(" "), Any(TRADE)],
    &[Any(CLUB), Text(" "), Any(TOWN), Any(TOWN_END)],
    &[Any(THINGS), Text(" & "), Any(FOOD)],
    &[Any(WATER), Text(" "), Any(SOUND), Any(ECHO)],
    &[Text("DJ "), Any(SOUND), Any(FIRST)],
    &[Text("A Short History of "), Any(ADJECTIVES), Text(" "), Any(THINGS)],
    &[Text("Don't "), Any(ORDER), Text(" the "), Any(CREATURES)],
    &[Any(ADJECTIVES), Text(" "), Any(ROLE), Text(" "), Any(NUMBER)],
    &[Text("Café "), Any(SOUND), Any(ECHO), Any(ECHO)],
];

/// The words that names are made of. The formatter would give each a line of its own.
#[rustfmt::skip]
mod lists {
    pub const FIRST: &[&str] = &[
        "Ada", "Aïcha", "Amir", "Anaïs", "Björn", "Bruno", "Carla", "Chloé", "Clara", "Dario", "Diego", "Edith",
        "Eleni", "Emil", "Ewa", "Farid", "Fiona", "Gregor", "Hana", "Hugo", "Ines", "Ivo", "Jamal", "Jörg", "José",
        "Judith", "Kaito", "Karim", "Lena", "Lucía", "Malik", "Marek", "Marta", "Mei", "Milan", "Nadia", "Noé", "Nora",
        "Olga", "Omar", "Otto", "Petra", "Priya", "Quentin", "Rosa", "Ruben", "Søren", "Samir", "Selma", "Tariq",
        "Thea", "Tomás", "Ursula", "Viktor", "Wanda", "Xavier", "Yara", "Yusuf", "Zoë", "Zuzana",
    ];

    pub const LAST: &[&str] = &[
        "Abara", "Almeida", "Andersson", "Ayala", "Bakker", "Bauer", "Beaumont", "Bianchi", "Castellanos", "Čapek",
        "Cho", "Dąbrowski", "Delacroix", "D'Amico", "Eriksen", "Fernández", "Fischer", "Fontaine", "García",
        "Grünwald", "Haddad", "Halvorsen", "Ibáñez", "Ito", "Jensen", "Kaminski", "Keller", "Kovács", "Laurent",
        "Lindqvist", "Lombardi", "Marchetti", "Mbeki", "Moreau", "Müller", "Nakamura", "Navarro", "Novák", "Nuñez",
        "O'Leary", "Okafor", "Ortega", "Pálsson", "Petrov", "Quiroga", "Rahman", "Rasmussen", "Romano", "Sánchez",
        "Schäfer", "Silva", "Szabó", "Tanaka", "Thorvald", "Ueda", "Valdés", "Virtanen", "Weiss", "Yamada",
        "Zieliński",
    ];

    pub const PARTICLE: &[&str] = &[
        "de ", "van der ", "von ", "della ", "el-", "Mc", "Saint-",
    ];

    pub const ADJECTIVES: &[&str] = &[
        "Amber", "Ancient", "Arctic", "Blazing", "Blue", "Broken", "Burning", "Cosmic", "Crimson", "Crooked",
        "Dancing", "Distant", "Electric", "Emerald", "Endless", "Fearless", "Flying", "Forgotten", "Frozen", "Gentle",
        "Ghostly", "Giant", "Golden", "Grumpy", "Hidden", "Hollow", "Homemade", "Howling", "Hungry", "Invisible",
        "Iron", "Lazy", "Little", "Lonely", "Lost", "Lucky", "Magnetic", "Midnight", "Modern", "Noisy", "Northern",
        "Paper", "Plastic", "Quiet", "Restless", "Secret", "Silver", "Sleepy", "Smoky", "Spicy", "Stolen", "Sunny",
        "Tiny", "Velvet", "Vintage", "Wandering", "Wild", "Winter", "Wooden", "Young",
    ];

    pub const CREATURES: &[&str] = &[
        "Antelopes", "Badgers", "Bandits", "Bears", "Beavers", "Bison", "Buccaneers", "Cobras", "Comets", "Condors",
        "Coyotes", "Cranes", "Dolphins", "Dragons", "Drifters", "Engines", "Falconers", "Foxes", "Geckos", "Ghosts",
        "Herons", "Hornets", "Huskies", "Ibexes", "Jesters", "Kestrels", "Lanterns", "Lynxes", "Magpies", "Mammoths",
        "Mechanics", "Mirrors", "Moose", "Nomads", "Otters", "Owls", "Pelicans", "Penguins", "Pilots", "Planets",
        "Ponies", "Quails", "Ravagers", "Robots", "Salamanders", "Satellites", "Shadows", "Sparrows", "Squirrels",
        "Storks", "Strangers", "Tides", "Turtles", "Umbrellas", "Vagabonds", "Vipers", "Walruses", "Wolves", "Wombats",
        "Zebras",
    ];

    pub const TOWN: &[&str] = &[
        "Alder", "Ash", "Bridge", "Bright", "Cedar", "Clear", "Coal", "Copper", "Crow", "Deer", "East", "Elm", "Fair",
        "Fern", "Fox", "Glen", "Granite", "Hazel", "High", "Honey", "King", "Lark", "Linden", "Maple", "Marble",
        "Marsh", "Mill", "Moss", "North", "Oak", "Orchard", "Pebble", "Pine", "Raven", "Red", "River", "Rose", "Salt",
        "Sand", "Silver", "Snow", "South", "Spring", "Stone", "Swan", "Thorn", "Timber", "West", "White", "Willow",
    ];

    pub const TOWN_END: &[&str] = &[
        "borough", "bourg-sur-Mer", "bridge", "brook", "bury", "by", "chester", "cliff", "dale", "field", "ford",
        "gate", "grove", "ham", "haven", "hill", "holm", "hurst", "hütte", "land", "lea", "ley", "mark", "mere",
        "minster", "mont", concat!("mou", "th"), "ness", "pool", "port", "ridge", "shire", "side", "stad", "stead", "ton", "vale",
        "ville", "ward", "water", "way", "wick", "wood", "worth",
    ];

    pub const FOOD: &[&str] = &[
        "Almond", "Apple", "Apricot", "Aubergine", "Bacon", "Banana", "Basil", "Beetroot", "Blueberry", "Cardamom",
        "Carrot", "Cashew", "Cheddar", "Cherry", "Chestnut", "Chilli", "Chocolate", "Cinnamon", "Coconut", "Coffee",
        "Crème Brûlée", "Fennel", "Fig", "Garlic", "Ginger", "Hazelnut", "Honey", "Jalapeño", "Leek", "Lemon",
        "Lentil", "Mango", "Maple", "Mushroom", "Nutmeg", "Olive", "Orange", "Paprika", "Parmesan", "Peach", "Peanut",
        "Pear", "Pepper", "Pistachio", "Plum", "Potato", "Pumpkin", "Raspberry", "Rhubarb", "Saffron", "Salmon",
        "Sesame", "Spinach", "Tofu", "Tomato", "Vanilla", "Walnut", "Watermelon",
    ];

    pub const DISH: &[&str] = &[
        "Bagels", "Bread", "Burritos", "Cake", "Casserole", "Chowder", "Cookies", "Crêpes", "Croissants", "Crumble",
        "Curry", "Dumplings", "Fritters", "Ice Cream", "Jam", "Lasagne", "Lemonade", "Muffins", "Noodles", "Omelette",
        "Pancakes", "Pie", "Pizza", "Pudding", "Risotto", "Salad", "Sandwiches", "Sauce", "Smoothies", "Soufflé",
        "Soup", "Stew", "Tacos", "Tart", "Toast", "Waffles",
    ];

    pub const DOING: &[&str] = &[
        "Admiring", "Baking", "Borrowing", "Breeding", "Building", "Carving", "Catching", "Cleaning", "Collecting",
        "Decorating", "Designing", "Discussing", "Drawing", "Dreaming of", "Filming", "Finding", "Fixing", "Folding",
        "Forgetting", "Growing", "Hiding", "Inventing", "Juggling", "Knitting", "Listening to", "Losing", "Mending",
        "Naming", "Ordering", "Painting", "Photographing", "Polishing", "Racing", "Reading about", "Recycling",
        "Repairing", "Restoring", "Saving", "Sharing", "Sketching", "Sorting", "Studying", "Swapping", "Talking about",
        "Thinking of", "Trading", "Watching", "Writing about",
    ];

    pub const THINGS: &[&str] = &[
        "Accordions", "Airports", "Aquariums", "Balloons", "Beaches", "Bicycles", "Birds", "Boats", "Bonsai",
        "Bookshops", "Boomerangs", "Bridges", "Cactuses", "Cameras", "Candles", "Cartoons", "Castles", "Cats", "Chess",
        "Clouds", "Comics", "Crosswords", "Dogs", "Dominoes", "Fireworks", "Fountains", "Gardens", "Guitars",
        "Hammocks", "Haïku", "Horses", "Jigsaws", "Kites", "Libraries", "Lighthouses", "Lullabies", "Maps",
        "Marathons", "Matinées", "Motorbikes", "Mountains", "Museums", "Naps", "Origami", "Pianos", "Picnics",
        "Postcards", "Puppets", "Puzzles", "Rainbows", "Records", "Rollerskates", "Sailing", "Scarves", "Skateboards",
        "Snow", "Stamps", "Sunsets", "Surfing", "Swimming", "Tattoos", "Teapots", "Telescopes", "Tents", "Trains",
        "Treehouses", "Trumpets", "Typewriters", "Ukuleles", "Volleyball", "Waterfalls", "Windmills", "Yoga",
        "Zeppelins",
    ];

    pub const WHEN: &[&str] = &[
        "after Dinner", "after Midnight", "all Day", "at 3 am", "at Dawn", "at Home", "at School", "at Weekends",
        "at Work", "before Breakfast", "by Moonlight", "by the Sea", "every Friday", "every Sunday", "for Ever",
        "in April", "in August", "in Bed", "in July", "in Paris", "in Public", "in Spring", "in Summer", "in Winter",
        "in the Car", "in the Dark", "in the Morning", "in the Rain", "in the Snow", "on Mondays", "on Saturdays",
        "on TV", "on Tuesdays", "on a Bus", "on a Train", "on the Beach", "with Friends", "with Grandma", "with Milk",
        "without You",
    ];

    pub const ROLE: &[&str] = &[
        "Archer", "Astronaut", "Baker", "Bandit", "Beekeeper", "Butler", "Captain", "Carpenter", "Clockmaker",
        "Composer", "Cook", "Countess", "Dancer", "Daughter", "Dentist", "Detective", "Diver", "Doctor", "Duke",
        "Falconer", "Farmer", "Ferryman", "Fiancée", "Fisherman", "Gambler", "Gardener", "Giant", "Goalkeeper",
        "Governess", "Hermit", "Hunter", "Inspector", "Inventor", "Judge", "Knight", "Librarian", "Locksmith",
        "Magician", "Mayor", "Midwife", "Miller", "Musician", "Painter", "Pianist", "Pilot", "Pirate", "Poet",
        "Postman", "Prince", "Princess", "Queen", "Sailor", "Shepherd", "Singer", "Smuggler", "Spy", "Tailor",
        "Teacher", "Thief", "Violinist", "Watchmaker", "Witch", "Wrestler",
    ];

    pub const NUMBER: &[&str] = &[
        "2", "3", "4", "7", "9", "12", "17", "21", "24", "33", "42", "51", "64", "77", "80", "88", "99", "101", "112",
        "180", "200", "212", "303", "360", "404", "512", "555", "611", "707", "747", "808", "911", "999", "1000",
        "1066", "1492", "1815", "1969", "1977", "1984", "1999", "2000", "2012", "3000",
    ];

    pub const SHOW: &[&str] = &[
        "Adventures", "Attic", "Auction", "Barbecue", "Bedtime Stories", "Boathouse", "Ceilidh", "Choir", "Cottage",
        "Diary", "Family", "Farm", "Garage", "Garden", "Holiday", "Hotel", "House", "Island", "Kitchen", "Laboratory",
        "Letters", "Lunch Hour", "Mystery", "Night", "Orchestra", "Party", "Quiz", "Radio Hour", "Railway", "School",
        "Secrets", "Songbook", "Summer", "Talk Show", "Toolbox", "Treasure Hunt", "Vegetables", "Voyage", "Wedding",
        "Workshop",
    ];

    pub const TRADE: &[&str] = &[
        "Architects", "Bakery", "Bicycles", "Books", "Brewery", "Cheese", "Chocolates", "Cinemas", "Clothing",
        "Coffee", "Flowers", "Furniture", "Guitars", "Hats", "Jewellery", "Kitchens", "Lamps", "Motors", "Opticians",
        "Paints", "Pharmacy", "Pianos", "Records", "Shoes", "Tea", "Toys", "Travel", "Watches",
    ];

    pub const CLUB: &[&str] = &[
        "1. FC", "AC", "Atlético", "Athletic", "City of", "Dynamo", "FC", "Fortuna", "Friends of", "Greater", "Inter",
        "IFK", "Juventud", "Lokomotiv", "Museum of", "New", "Old", "Olympique", "Port", "Racing", "Radio", "Rapid",
        "Real", "Royal", "SV", "Saint", "Sporting", "Theatre of", "University of", "Upper",
    ];

    pub const WATER: &[&str] = &[
        "Baie de", "Cape", "Fort", "Isla", "Lac", "Lake", "Monte", "Mount", "Parque", "Port", "Río", "Valle",
    ];

    pub const SOUND: &[&str] = &[
        "Ba", "Be", "Bo", "Bri", "Ca", "Cle", "Da", "Do", "Dra", "E", "Fa", "Fi", "Fo", "Ga", "Gra", "Ha", "I", "Jo",
        "Ka", "Ki", "Kro", "La", "Li", "Lu", "Ma", "Me", "Mo", "Na", "Ne", "No", "O", "Pa", "Pe", "Plu", "Qui", "Ra",
        "Ri", "Ro", "Sa", "Se", "Shi", "So", "Ta", "Te", "Tru", "U", "Va", "Ve", "Vo", "Wa", "Xe", "Ya", "Yo", "Za",
        "Zi",
    ];

    pub const ECHO: &[&str] = &[
        "ba", "bi", "co", "cu", "da", "di", "fa", "fo", "ga", "go", "ka", "ko", "la", "lé", "lo", "ma", "mi", "mo",
        "na", "ni", "no", "nü", "pa", "po", "ra", "re", "ri", "ru", "sa", "si", "ta", "ti", "to", "va", "vi", "vo",
        "xa", "za", "zo", "zu",
    ];

    pub const ORDER: &[&str] = &[
        "Ask", "Believe", "Blame", "Bother", "Call", "Chase", "Copy", "Count", "Fear", "Feed", "Fight", "Find",
        "Follow", "Forget", "Free", "Fool", "Hug", "Hurry", "Interrupt", "Invite", "Kiss", "Leave", "Lose", "Love",
        "Marry", "Mind", "Miss", "Open", "Pay", "Phone", "Push", "Remember", "Rush", "Save", "Scare", "Sell", "Shoot",
        "Startle", "Steal", "Stop", "Surprise", "Tease", "Tell", "Test", "Tickle", "Trust", "Wake", "Watch", "Wash",
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_all_different_and_plain() {
        let mut seen = std::collections::HashSet::new();
        for rank in 1..=COUNT {
            let mut name = String::new();
            write(rank, &mut name);
            assert!(!name.contains(['\t', '"', '\\']) && !name.contains(char::is_control), "{name}");
            assert!(seen.insert(name.clone()), "{name} twice");
        }
        assert!(!seen.contains("Michael Jackson") && !seen.contains("Green Bay Packers"));
    }

    #[test]
    fn strides_meet_every_combination() {
        for pieces in KINDS {
            let combinations: u64 = lists(pieces).map(|list| list.len() as u64).product();
            assert!(combinations * KINDS.len() as u64 >= u64::from(COUNT), "{combinations}");
            assert!(!combinations.is_multiple_of(STRIDE), "{combinations}");
        }
    }
}
