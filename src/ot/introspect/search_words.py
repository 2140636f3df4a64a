"""Words as the search compares them: names taken apart, endings taken off, and those that stand for one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import pairwise

PARTS = re.compile(r"[A-Z]+(?![^\W\dA-Z_])|[A-Z]?[^\W\dA-Z_]+|\d+")
"""``getUserID``, ``get_user_id`` and ``get user ID`` have the same parts."""

TEXT = """
a about all am an and any are as at be been but by can could did do does for from had has have how i if in into is it
its just let like may me my need of on one or our out please should so some something than that the their them then
there these this those to up us use using via want was we were what when where which will with would you your
across again already also between during here only over per still very while within yet
"""
SMALL = frozenset(TEXT.split())
"""Words that say nothing of what is sought."""
VAGUE_TEXT = """
make take turn go put give keep try know tell say thing way happen come work
zero one two three four five six seven eight nine ten twelve twenty fifty dozen hundred thousand first second third last
next new old own other another same different certain particular given all every each many most several some more whole
full entire complete single current present big large small long short good better best main real actual actually really
somewhere someone somebody everything anything nothing now today yesterday tomorrow tonight morning afternoon evening
noon week month year monday tuesday wednesday thursday friday saturday sunday early late quick quickly automatically
simply before after since until
"""
VAGUE_WORDS = frozenset(VAGUE_TEXT.split())
"""Words that may mean anything: verbs without a meaning of their own, numbers, times and other attributes."""
PHRASES = """
right now, at the moment, a lot, in order =; kind of = type; get rid of, throw away, throw out = delete; take off =
remove; no longer, any more = cancel; keep in mind = remember; note down, write down, wrote down, written down, jot
down = note remember; tell you, told you, do you know, do you remember = recall; check in = commit; check out =
checkout; go back, went back, come back = back; roll back = rollback; roll out = rollout; shut down = stop; put off,
push back = postpone; look up, look for, look through, looking for, find out = search; set up = create configure; sign
in, log in = login; sum up = summarize; fill in, fill out = fill; hand over = assign transfer; give back = refund
return; pay back, money back = refund; how many, how often = count; how much money = balance money; how much = amount;
how long = duration; how far = distance; how high = elevation; how big, how large = size; how old = age; how tall =
height; how hot, how warm, how cold = temperature; how fast, how slow = speed; how do i get to, which way = direction
route; what time = time; take place = event; out of date = outdated; up to date = latest; step by step = step think;
to do = todo task; google doc = drive document; google sheet = drive spreadsheet; google drive = drive; google map =
maps; word doc, word document, word file = docx; drive to, walk to, travel to, get to, way to = directions; table of
contents = outline; phone number = phone; source file = code file; side effect = effect; still open = list; my open =
list my; open issues = list issues; open tickets = list tickets; open bugs = list bugs; open tasks = list tasks; open
pull requests = list pull requests
"""
"""What several words mean together that each of them does not: phrases, and what to look for instead."""
EXTENSIONS = (
    "csv|tsv|jsonl?|ya?ml|toml|ini|cfg|conf|env|lock|md|txt|log|py|js|ts|sh|sql|html?|css|xml|pdf|docx?|xlsx?|pptx?|db|"
    "sqlite3?|parquet|png|jpe?g|gif|svg|zip|gz|diff|patch|ipynb"
)
ARGUMENTS = (
    (r"(?i)\b(?:about|named|called|titled)\b(?:(?!\b(?:in|on|from|at|inside|within|with|into|and)\b).)*", " "),
    (r"(?i)\b(?:don't|do not|never|without)\s+\w+", " "),
    (r"https?://\S+|\b[\w-]+\.(?:com|org|net|io|dev|de|eu)\b\S*", " url "),
    (r"[\w.+-]+@[\w.-]+", " email address "),
    (r"\b[A-Z]{2,}-\d+\b", " issue ticket "),
    (rf"[\w-]*\.({EXTENSIONS})\b(?!\()", r" file \1 "),
    (r"\b\w+\([^)]*\)", " call "),
    (r"(?<!\w)(['\"`])[^'\"`]+\1(?!\w)|\b[A-Z]+_[A-Z_]+\b|\$\w+|\b\d+\b", " "),
)
"""What a program will give to the tool, and what it says of the tool."""
BETWEEN = re.compile(r"[,;:.!?\n]\s|\b(?:and|then|after that|afterwards)\b", re.IGNORECASE)
WHOLE = re.compile(r"[^\W_]+")
MAX_TEXT = 1_000
"""Characters of a text that are looked at: beyond them stand examples and small print."""


def words_of(text: str) -> list[str]:
    """Return the words of *text* as stems; one that has parts is there as a whole, too."""
    return [word for whole in WHOLE.findall(text[:MAX_TEXT]) for word in _stems(whole)]


@lru_cache(maxsize=50_000)
def _stems(whole: str) -> tuple[str, ...]:
    parts = [] if whole.islower() or whole.istitle() else PARTS.findall(whole)
    return (stem(whole), *(stem(part) for part in parts if len(parts) > 1))


def find_words(query: str) -> list[tuple[str, str]]:
    """Return the words of a query that say something, each as it was written and as its stem."""
    parts = PARTS.findall(_in_other_words(query)) or PARTS.findall(query)
    telling = [part for part in parts if part.lower() not in SMALL and len(part) > 1]
    return list({stem(part): (part, stem(part)) for part in telling or parts}.values())


def without_arguments(query: str) -> str:
    """Return *query* with what kind of argument it names in the place of each: ``url`` for an address."""
    for pattern, meaning in ARGUMENTS:
        query = re.sub(pattern, meaning, query)
    return query


def is_name(written: str) -> bool:
    """Return whether a word of a query looks like the name of somebody or of a place."""
    return written.istitle() and len(written) > 1


def _in_other_words(query: str) -> str:
    """Return *query* with what its phrases mean in their places."""
    meanings = _phrases()
    return _any_phrase().sub(lambda found: meanings.get(found[1].lower(), ""), query)


@cache
def _phrases() -> dict[str, str]:
    rows = (row.partition("=") for row in " ".join(PHRASES.split()).split(";"))
    return {phrase.strip(): meaning.strip() for phrases, _, meaning in rows for phrase in phrases.split(",")}


@cache
def _any_phrase() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(sorted(_phrases(), key=len, reverse=True))})s?\b", re.IGNORECASE)


def clauses(query: str) -> list[str]:
    """Return the parts of a query that are intents of their own: the first, and each that begins with a verb."""
    parts: list[str] = []
    for part in BETWEEN.split(query):
        first = next((word for word in map(str.lower, PARTS.findall(part)) if word in ACTIONS or word not in SMALL), "")
        if not first:
            continue
        if parts and first not in VERBS:
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def join_words(query: str) -> list[tuple[str, str]]:
    """Return each two neighbours of a query as one word: ``drop-down`` and ``dropDown`` are also ``dropdown``."""
    parts = PARTS.findall(query)
    return [(f"{first} {second}", stem(first + second)) for first, second in pairwise(parts) if second != "s"]


FORMS = (
    "write wrote written; make made; send sent; take took taken; find found; get got gotten; keep kept; "
    "run ran; give gave given; go went gone; pay paid; build built; choose chose chosen; draw drew drawn; "
    "know knew known; throw threw thrown; hide hid hidden; break broke broken; spend spent; begin began begun; "
    "forget forgot forgotten; say said; tell told; see saw seen; buy bought; sell sold; hold held; lose lost; "
    "leave left; mean meant; speak spoke spoken; teach taught; bring brought; think thought; show shown; "
    "drive drove driven; freeze froze frozen; grow grew grown; person people; child children; "
    "index indices indexes; criterion criteria; matrix matrices; axis axes; old older oldest; "
    "new newer newest; big bigger biggest; large larger largest; slow slower slowest; fast faster fastest; "
    "near nearer nearest; long longer longest; short shorter shortest; small smaller smallest; "
    "high higher highest; low lower lowest; early earlier earliest; wide wider widest; heavy heavier heaviest; "
    "cheap cheaper cheapest; license licence licences; center centre; categorize category categories; "
    "analyze analysis analyses analyse; compare comparison; describe description; modify modification; "
    "summarize summary summaries; notify notification; permit permission; define definition; "
    "declare declaration; visualize visualization; identify identification identifier; "
    "classify classification; verify verification; delete deletion; remove removal; approve approval; "
    "pay payment; deploy deployment; subscribe subscription; transcribe transcript; configure configuration; "
    "publish publication; recur recurring; store storage; respond response; directory dir dirs directories; "
    "environment env"
)
"""Forms of words that no rule leads back to the word, after that, and nouns of verbs."""
BRITISH = re.compile(r"(i|y)s(e|ing|ed|es|er|ation)$")


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return *word* in small letters without its ending, roughly: words that agree in that mean the same."""
    forms = _forms()
    word = _without_plural(forms.get(lower := word.lower(), lower))
    word = BRITISH.sub(r"\1z\2", forms.get(word, word)) if len(word) > 5 else forms.get(word, word)
    for ending, shortest in (("ing", 3), ("ed", 3), ("er", 4), ("ion", 5)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest and word[-len(ending) - 1] not in "e":
            word = _undouble(word[: -len(ending)])
            break
    word = f"{word[:-3]}or" if len(word) > 4 and word.endswith("our") else word
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


@cache
def _forms() -> dict[str, str]:
    return {form: word for line in FORMS.split(";") for word, *forms in [line.split()] for form in forms}


def _without_plural(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def _undouble(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


# ---------------------------------------------------------------- what is to be done

ACTION_WORDS = {
    "read": "get list read show find search fetch view retrieve describe query look see "
    "what which who how when where is are does do did am",
    "make": "create add new make insert write post open start draft send put upload push build compose",
    "change": "update edit change set modify rename patch replace correct move mark",
    "delete": "delete remove erase drop clear forget cancel destroy wipe purge rm take",
}
ACTIONS = {word: action for action, words in ACTION_WORDS.items() for word in words.split()}
STARTS = """
accept analyze append apply approve archive ask assign attach book calculate call capture check choose clean click
close commit compare compress convert copy count deploy download drag draw email execute explain export extract fill
filter finalize fix follow format generate give go group import inform install invite join keep label launch link load
log measure merge navigate note notify parse pay pick plot prepare press print publish pull record refund reload
remember remind report resize resolve restart restore return review run save scale schedule screenshot select share
sort split stage stop store submit subscribe suggest sum summarize switch tag tell test transform translate turn type
undo validate verify visit wait watch whether zip
"""
VERBS = frozenset((*ACTIONS, *STARTS.split()))
"""Words with which an intent of its own may begin."""


def action_of(text: str) -> str:
    """Return the action that the first telling word of a query or a name asks for, or nothing."""
    words = (part.lower() for part in PARTS.findall(text))
    return next((ACTIONS[word] for word in words if word in ACTIONS), "")


# ---------------------------------------------------------------- words that people use for one another

USUAL, MANY = 8, 0.5
"""A word with more than so many synonyms means each of them less likely, by an exponent of how many more."""

GROUPS = """
# what is done
delete remove erase drop forget destroy purge rm trash discard; clear empty delete wipe; list show enumerate browse
display all ls; get retrieve read show look see view obtain; fetch download get scrape crawl pull; load import open
read; create add new make insert start open; build compile make; update edit modify change alter patch adjust correct;
replace edit update substitute swap; set change configure put; put insert place add; search find query lookup locate
grep seek; filter query where narrow; send post publish; tell notify inform message announce post; write save store
put record overwrite; write compose draft create author; run execute evaluate invoke start launch; rename move mv;
move transfer reschedule relocate shift; copy duplicate clone fork cp; link connect relate associate relation; attach
attachment upload; split separate divide; close end stop finish dismiss terminate kill quit; cancel end stop abort
unsubscribe; close resolve finish complete transition status done; undo reset revert restore unstage; stage add index
staging; commit record save; answer reply respond comment; comment note remark annotation feedback; approve accept
review confirm; accept confirm handle; follow watch subscribe listen; unwatch stop unsubscribe unfollow; assign give
assignee owner responsible; invite attendee invitation guest; remember store memory observation fact learn know; know
knowledge memory; navigate open visit go browse; click press push tap button; enter type fill input; wait until appear
disappear gone; calculate compute sum add; export save write download convert; convert turn transform translate; start
begin launch new create; restart rollout reload reboot; switch checkout select change go toggle; select choose pick;
analyze audit inspect examine check; describe detail information info explain; suggest recommend propose advise;
record capture screencast trace; echo repeat say; compress zip gzip archive; archive trash; sync refresh update
reload; restrict limit validate allow; highlight color format conditional; scale replica resize grow; pay payment
charge money checkout; refund return money back; control turn switch on off
# what it is done to
mkdir create make directory; picture image photo screenshot logo icon; page document doc wiki article; section chapter
part paragraph heading; outline table content toc heading tree; error issue problem crash failure bug; repo repository
project; mr merge request; table database data; tab sheet worksheet page; macro vba code; header head top title;
freeze pane frozen; sparkline small chart mini; goal target wanted; separator number format; user person people member
colleague who account customer; permission restriction access allow permit restrict; history log changelog; log output
console stdout; time hour duration long; duration time long sla; status health state; ci check build pipeline status
green pass; size length count number many; size bytes large big; ttl expire expiration lifetime live minutes seconds;
message conversation chat post; channel room team; news article headline; time date clock; calendar meeting
appointment event schedule; direction route way drive travel; map place location address; performance speed slow
vital; slow slowest speed performance network throttle; network connection offline; viewport mobile device emulate
resize; text string content; popup dialog alert modal box prompt confirm; dropdown select option entry; shortcut key
keyboard combination; login sign form; http network request call api; error exception console; stack trace exception
error; color font bold format style background fill italic border colour; setting configuration option preference;
entity node person; cache redis key; leaderboard ranking score sort; citation reference bibliography bibtex; tree
hierarchy structure recursive; latest recent newest last; older previous historical version history earlier; pattern
glob wildcard match every; reaction emoji react thumb smiley; response body content result; exist there have; row
column line record; field property column attribute; member element item value; due deadline date; many multiple
several batch bulk once; health healthy alive status; server service machine host; container docker image; cluster
kubernetes namespace; balance money account funds; device light lamp thermostat sensor; documentation doc manual
reference; untracked status working; colleague coworker teammate person user somebody someone; crash fail broken error
down; unstage reset index; appearance look format style screenshot; author creator writer; cat read print; contact
customer person; cron schedule timer; function method code symbol; host domain dns; incident outage alert error; job
run task workflow; language translate locale; metric figure statistics measure; milestone version release sprint; my
me self own assign assignee; path route file; phone call telephone; reminder task todo; review feedback comment
approve; rule policy filter; sound audio music song track; thread conversation reply; translate convert language; zone
timezone region; picture image drawing illustration png jpg svg; headline news press story; use usage reference caller
call; syntax structure block statement; word docx document; slide presentation deck powerpoint pptx; excel xlsx csv
sheet table; dataset data table csv; profile describe statistics; match join compare; wrote author write who; commit
uncommitted change status; convention guideline guide rule standard policy; lately recent last newest; rest more next
remaining truncate cut; display show view; breaking change changelog; license licence; dead broken alive reachable;
parallel concurrent many once; largest biggest top most heaviest slowest expensive; day hour time date yesterday
today; right permission access role share; street address road house; temperature sensor thermostat heating warm cold;
bedroom kitchen room house home door lock; npm pip apt install script command; restart crash event; umbrella rain
weather sunny wind forecast; hotel cafe pharmacy place nearby business; clip video talk youtube; tunnel port forward
localhost expose; deployment replica pod kubernetes; temporary presign signed expire; cpu memory usage load; index key
performance; vacation holiday busy free; background job run; yaml configuration settings; regex regexp regular
expression pattern; old original earlier former revision; decide decision note agree; crosstab tabulation pivot
aggregate; newsletter mail email; cancel delete remove; price cost amount money; month year week date; average mean
sum aggregate group; boss sender from colleague; snippet template reusable; running alive health status; dependency
package requirement library; react django numpy pandas library package; sqlite postgres mysql database sql; variable
name symbol; lamp bulb light dim; museum station restaurant place; bike car train walk route direction; free text
string; json schema structured field extract; site online address reachable alive; hyperlink href link
# counts, sizes and space
count number quantity total amount frequency occurrence; size space storage disk bytes capacity volume; largest
biggest heaviest highest most top maximum; smallest lowest least minimum fewest; space size disk usage; width wide
narrow column layout; height tall high altitude elevation; resize enlarge shrink scale dimension
# time
date time when day age; duration took elapsed latency long time; expire expiry expiration ttl timeout temporary
lifetime; schedule plan calendar cron timetable; upcoming next future forecast coming soon; past previous history
earlier former; previous before back last undo; now current present today; recur repeat monthly weekly periodic
regular; recently lately recent latest new; deadline due until
# people
author creator owner; owner responsible assignee charge; person user member colleague employee staff teammate
participant attendee; everybody everyone all team; boss manager sender from; customer client buyer subscriber payer
patron; identity account profile user who self
# comparing and changing
difference diff compare change delta versus; rewrite transform refactor replace rephrase paraphrase; swap replace
exchange substitute; fix repair solve resolve correct patch; undo revert rollback restore rollout back previous;
modify adjust tweak amend change update edit; increase raise grow scale more; decrease reduce lower shrink less;
append extend add attach end bottom; prepend begin top front
# finding
search find look seek locate discover lookup; where locate find location; explore browse list discover; contain
include hold mention; mention contain refer; occurrence match hit usage mention; nearby near around closest close
vicinity; answer result reply response; ask question query request inquire
# keeping
save store keep persist put write record; remember store memory note recall retain; note memo remark annotation
comment; backup export copy dump snapshot archive; upload put push import publish transfer; download export pull fetch
# beginning and ending
start launch begin run initiate spin boot; stop end kill terminate halt quit abort cancel shutdown pause; pause
suspend hold stop; resume continue unpause; finish complete done end close finalize; finalize finish complete confirm
issue; cancel unsubscribe stop end terminate quit leave; unsubscribe cancel subscription
# money
money payment balance fund cash amount currency; pay payment charge bill invoice purchase checkout; refund reimburse
repay return chargeback; subscription plan recurring membership monthly; price cost amount fee; earn revenue income
sale
# pictures, sound and documents
picture image photo screenshot png jpg jpeg graphic; icon logo image svg; design mockup layout figma component screen;
color colour palette token theme; font typography text style; video clip film movie recording screencast talk;
subtitle caption transcript spoken said lyrics; pdf document paper report manual contract; manual documentation guide
handbook document; spreadsheet sheet excel workbook xlsx table; table row column grid data; column field attribute
header; cell range value; chart graph plot diagram figure visualization; page sheet slide tab; summary abstract
overview digest; paper article publication preprint study research; cite citation reference bibliography; heading
section chapter title outline
# the web
web internet online website site; url link address href uri; web page webpage website site; browser tab page window;
login
sign password account credential; button click element press; form field input fill; cookie session storage; html page
markup element dom; css style stylesheet appearance; javascript script js code; request call http api endpoint rest;
endpoint api url request; dead broken invalid unreachable down; alive reachable up online respond available; respond
answer reply reachable alive; scrape crawl extract fetch; popup dialog alert confirmation box modal window message
# code and packages
code source program script; function method procedure routine symbol; class type struct interface; argument parameter;
library package module dependency framework; version release tag revision; outdated old stale behind upgrade; upgrade
update migrate; vulnerability security cve advisory; convention guideline rule standard style policy; test check
verify validate spec; deploy release rollout apply ship publish; bug issue defect error problem fault; crash error
exception failure bug; exception error crash traceback stack; production live deployed environment; cause reason why
root analyze; why cause reason explain; log output print stdout; trace span request distributed latency service;
performance speed slow fast latency profile; slow performance latency expensive bottleneck; environment variable env;
secret password credential key token; branch fork line; commit revision change checkin record; approve accept review
agree; merge combine join unite integrate; contributor author committer
# tickets and planning
ticket issue task story card bug item; backlog sprint board; sprint cycle iteration milestone; board kanban project
agile; priority urgent importance severity; status state progress phase transition workflow; assign give delegate
owner assignee; epic parent initiative; subtask child sub; watch follow subscribe observe monitor; block dependency
depend link; depend dependency link relation require; estimate point effort time; worklog time hour spent log; sla
deadline agreement response
# messages and mail
email mail message letter inbox; reply answer respond response thread; draft prepare unsent compose; send mail post
deliver submit dispatch forward; forward send redirect; simultaneously parallel once concurrent multiple; preference
prefer favourite like habit; attach attachment enclosed file; inbox mail unread email; archive label remove inbox;
spam junk filter rule; message chat post dm text; channel room group conversation; react reaction emoji thumb like;
announce post publish broadcast message tell; invite add attendee guest share
# calendar and places
meeting appointment event call; book reserve create schedule; postpone reschedule delay move shift later; busy free
available availability slot; free available busy freebusy time; timezone zone time clock; address street location
place postal; coordinate latitude longitude gps position location; route direction way path journey travel trip;
travel trip journey drive distance route; distance far kilometer mile travel; shop store business place restaurant;
restaurant cafe bar place food; weather forecast rain snow temperature wind sun; storm alert warning hurricane flood
heat; mountain elevation height altitude
# data and databases
database db sql table; record row entry document item; entry item element record; query sql select statement; schema
structure column table definition; key id identifier; value data content; sum total add aggregate; group aggregate
pivot by; null missing empty blank; missing absent lack without; duplicate repeated same copy; sort order rank
arrange; cache store redis memory; queue list stack; push add append insert; pop remove take dequeue; list array
queue; hash map dict object field; expire delete remove; connected client connection; vector embedding similarity
semantic; similar like related near semantic; stream event entry message; kind type sort category
# machines
pod container kubernetes k8s; kubernetes k8s kubectl cluster; deployment kubernetes rollout replica; replica instance
copy scale; instance replica copy server; cluster kubernetes context; manifest yaml resource configuration; resource
object item; port forward tunnel localhost reach access; reach access connect forward; access permission right share
reach; volume disk mount storage; process task program job pid; cpu processor load usage; memory ram usage heap;
command shell terminal bash console cli; execute run command invoke; machine computer host laptop server local; laptop
local machine localhost computer; device sensor gadget appliance; lamp light bulb switch; door lock gate garage;
bucket s3 storage object; object file item; folder directory prefix path; prefix folder path under; subpage child
children page sub; child children sub nested below; share permission access give grant invite link; grant give allow
permission access; revoke remove permission; shareable link public url share; right permission access role edit
# thinking
think reason reflect step thought plan; convert transform turn change format; format style convert; export save
convert output; advice suggest recommend recommendation tip hint; suggest recommend propose advice; improve optimize
recommend better; explain describe why plan tell; classify label categorize tag sort; extract pull get parse; parse
read extract convert; summarize shorten condense brief; fact observation information knowledge; relation relationship
link connection edge; node entity vertex; knowledge memory graph fact; back previous undo revert rollback return
# colours and looks
color colour red green yellow blue orange black white grey bold background highlight format; bold italic underline
font format style; align alignment center left right format; protect protection lock readonly; hide hidden visibility
collapse
# more of time and plans
agenda calendar event schedule appointment plan; monday tuesday wednesday thursday friday saturday sunday weekend
tomorrow event calendar; lunch dinner party meeting event; remind reminder event task notify; holiday vacation busy
event; noon midnight morning evening clock time
# people and organisations
organization company firm business workspace account; workspace team organization account; team group squad department
crew; guest attendee participant invite
# places
avenue street road address; airport station city town country place; drive car direction route; foot walk bike train
bus transport direction; attraction sight museum place; review rating star opinion recommendation
# code
exercise test; implement define declare source; pyproject requirement package dependency; helper function utility;
endpoint url api address; readme file document; remote github origin repository; pullrequest pull request pr; diff
change patch difference delta; unmerge merge split; tag label version release; skip ignore exclude leave; linter lint
check style; debug trace console inspect; leak heap; accessibility a11y audit lighthouse; seo audit lighthouse score;
score rating rank grade; emulate simulate mimic pretend fake device throttle; offline network emulate; dark light
theme scheme mode; geolocation location emulate; drag drop move; hover mouse pointer cursor; scroll page navigate;
spinner loading wait appear disappear gone; vanish disappear gone expire; wait until ready pause appear; type enter
input write text keyboard; checkbox option tick select form; submit send form button; upload attach choose file;
network request traffic http call; header body response request; heap memory snapshot; insight performance analyze
trace
# documents and research
latex tex source formula; passage excerpt quote paragraph text; related similar citation reference; watch alert topic
follow; topic subject theme field area; paragraph block text section; bullet list block item; template boilerplate
blueprint; workspace wiki page; wiki confluence page knowledge; space wiki confluence; view visit read statistics;
restriction permission limit access; blog post page article
# data stores
expire vanish timeout ttl; acknowledge ack confirm processed; publish send broadcast message; subscribe listen follow
channel; range slice part between; scan iterate list all; namespace prefix cluster; uptime info statistics server
health; semantic meaning similar vector
# sheets
formula calculation function compute; goal seek target solve; pivot summarize group crosstab; slicer filter timeline;
validation dropdown restrict allow; merge unmerge combine join; duplicate unique remove distinct; macro vba script;
border line frame format
# services
storage bucket s3 aws amazon cloud; gdrive drive; doc document drive; mailbox gmail email mail inbox; yaml manifest
config; image container registry; registry repository hub; daemon background service process; tutorial video guide
example; token variable secret design; spacing layout margin; vector graphic svg icon; thermostat heating temperature
degree; light lamp brightness dim; curtain blind cover device; alarm alert warning; purchase buy order payment
checkout; shipping order delivery; discount coupon price; tax invoice price; organization account token; escalate
priority assign; assign reassign owner give; reassign assign transfer; resolve close fix done; screenshot capture
snapshot picture image png
"""
"""Groups of words, by what they are about; a word may stand in several."""


def synonyms() -> Mapping[str, Mapping[str, float]]:
    """Return for each stem the others that may be meant, and how likely: the fewer there are, the likelier each."""
    shared: dict[str, set[str]] = {}
    groups = " ".join(line if line[:1] != "#" else ";" for line in GROUPS.splitlines())
    for group in groups.split(";"):
        stems = {stem(word) for word in group.split()}
        for word in stems:
            shared.setdefault(word, set()).update(stems - {word})
    likely: dict[str, float] = {word: (USUAL / max(USUAL, len(others))) ** MANY for word, others in shared.items()}
    return {word: dict.fromkeys(others, likely[word]) for word, others in shared.items()}
