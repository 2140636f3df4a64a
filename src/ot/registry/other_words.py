"""Other words for the tools of bundled packs and their parameters; read only where a name is not known, and by search.

An alias is a name that programs may call: its parameters and its result mean the same. Any other word is only a way to
find the tool, for search and for the texts of errors, since what a program expects of it may be something else.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ot.registry.tool import Tool


class OtherWords(NamedTuple):
    """Aliases of a tool, and words that only lead to it, each in one text; names have ``_`` and no blanks."""

    aliases: str = ""
    leads: str = ""

    @property
    def all(self) -> list[str]:
        """Every word that stands for the tool."""
        return f"{self.aliases} {self.leads}".split()


TOOLS: dict[str, OtherWords] = {
    "brave.image_search": OtherWords("images search_images", "pictures photos"),
    "brave.local_search": OtherWords("local places search_places", "maps nearby"),
    "brave.news_search": OtherWords("news search_news", "headlines"),
    "brave.search_batch": OtherWords("search_many batch_search"),
    "brave.web_search": OtherWords("search_web web", "google internet"),
    "code.definitions": OtherWords("definition find_definition find_definitions goto_definition", "find locate where"),
    "code.references": OtherWords("find_references usages find_usages", "callers calls uses"),
    "code.rewrite": OtherWords("", "replace refactor rename sub"),
    "code.search": OtherWords("ast_search structural_search", "grep query match"),
    "code.symbols": OtherWords("outline list_symbols get_symbols", "functions classes structure parse tree"),
    "context7.doc": OtherWords("docs documentation get_docs get_library_docs", "get fetch read"),
    "context7.search": OtherWords("search_libraries find_library", "resolve resolve_library_id lookup"),
    "data.chart": OtherWords("", "plot draw graph visualize bar line"),
    "data.describe": OtherWords("describe_table", "schema columns profile summary summarize info head inspect"),
    "data.join": OtherWords("", "merge combine"),
    "data.pivot": OtherWords("pivot_table", "group groupby aggregate crosstab"),
    "data.query": OtherWords(
        "sql run_sql run_query execute_sql query_sql sql_query",
        "select execute filter where group pandas dataframe",
    ),
    "data.read": OtherWords(
        "load rows read_csv load_csv read_json load_json read_jsonl read_parquet read_excel read_table read_file",
        "csv excel open get",
    ),
    "data.tables": OtherWords("list_tables show_tables", "schema databases"),
    "documents.info": OtherWords("metadata get_info", "properties pages_count page_count"),
    "documents.pages": OtherWords("get_pages read_pages", "page slides split"),
    "documents.search": OtherWords("", "find grep"),
    "documents.tables": OtherWords(
        "get_tables extract_tables read_tables", "sheets sheet rows read_excel excel read_xlsx"
    ),
    "documents.to_markdown": OtherWords(
        "read extract_text get_text markdown read_text to_text text read_pdf read_docx read_document",
        "convert parse extract load open content pdf docx",
    ),
    "file.append": OtherWords("append_text append_file append_to_file"),
    "file.copy": OtherWords("cp copy_file", "duplicate backup"),
    "file.delete": OtherWords("rm remove unlink delete_file remove_file", "rmdir rmtree erase trash"),
    "file.edit": OtherWords("replace edit_file str_replace replace_text replace_in_file", "update sed substitute"),
    "file.exists": OtherWords("file_exists path_exists", "is_file is_dir isfile isdir has"),
    "file.glob": OtherWords("glob_files", "find find_files rglob list_files files walk"),
    "file.info": OtherWords("stat file_info get_file_info get_info metadata", "size mtime modified details"),
    "file.list": OtherWords("ls list_dir list_directory", "dir iterdir scandir list_files browse"),
    "file.make_directory": OtherWords("mkdir makedirs make_dir create_directory create_dir create_folder"),
    "file.move": OtherWords("mv rename move_file rename_file"),
    "file.patch": OtherWords("apply_patch apply_diff"),
    "file.read": OtherWords(
        "read_file read_text read_text_file cat get_contents get_content",
        "open load get view show head tail read_multiple_files read_many",
    ),
    "file.search": OtherWords("grep search_text grep_files search_in_files find_in_files", "find search_files rg"),
    "file.tree": OtherWords("directory_tree", "walk structure"),
    "file.write": OtherWords("write_file write_text save save_file create_file", "create put overwrite dump touch new"),
    "git.blame": OtherWords("annotate", "who author"),
    "git.branches": OtherWords("list_branches", "branch current_branch tags refs"),
    "git.commit": OtherWords("", "save checkin"),
    "git.diff": OtherWords("", "changes compare patch"),
    "git.log": OtherWords("history get_log list_commits", "commits revisions"),
    "git.read": OtherWords("show_file read_file cat cat_file file_at", "file get checkout blob"),
    "git.show": OtherWords("show_commit get_commit", "details inspect"),
    "git.stage": OtherWords("add"),
    "git.status": OtherWords("", "changed dirty branch current_branch"),
    "llm.extract": OtherWords("", "parse structured fields"),
    "llm.map": OtherWords("", "classify each batch"),
    "llm.transform": OtherWords("", "ask generate complete prompt chat summarize translate rewrite"),
    "memory.delete": OtherWords("remove forget", "clear erase"),
    "memory.list": OtherWords("list_notes", "all recent latest notes keys"),
    "memory.read": OtherWords("get read_note get_note", "load show open"),
    "memory.search": OtherWords("find recall search_notes find_notes", "query lookup retrieve"),
    "memory.tags": OtherWords("list_tags"),
    "memory.update": OtherWords("edit update_note", "change append modify"),
    "memory.write": OtherWords("save add store remember note add_note save_note create", "set put insert append"),
    "ot.help": OtherWords("search find_tools search_tools", "find describe docs signature usage"),
    "ot.tools": OtherWords("list_tools"),
    "package.changelog": OtherWords("changes release_notes", "releases news history"),
    "package.compare": OtherWords("compare_versions", "outdated check upgrade audit"),
    "package.info": OtherWords("get_info metadata", "show search details license dependencies"),
    "package.latest": OtherWords("latest_version version get_latest get_latest_version newest", "current"),
    "package.versions": OtherWords("list_versions get_versions all_versions", "releases history"),
    "rg.count": OtherWords("count_matches"),
    "rg.files": OtherWords("list_files", "list find ls glob find_files"),
    "rg.search": OtherWords("grep rg find ripgrep search_text", "match lines"),
    "rg.types": OtherWords("list_types file_types"),
    "web.check": OtherWords("check_urls check_links", "head alive ping status"),
    "web.fetch": OtherWords("get read fetch_url get_url fetch_page get_page read_url", "download open scrape"),
    "web.fetch_many": OtherWords("fetch_all fetch_urls get_many", "batch crawl"),
    "web.links": OtherWords("get_links extract_links list_links", "hrefs anchors"),
    "web.tables": OtherWords("get_tables extract_tables read_tables", "table read_html"),
}

TASKS = """
brave.image_search: picture photo photograph logo icon drawing illustration wallpaper looks like
brave.local_search: near me around here closest shop store restaurant cafe bar hotel pharmacy doctor dentist
  hairdresser office bakery opening hours phone rating address open today city street
brave.news_search: press coverage headline newspaper article journalism current events today happened latest story
  report breaking
brave.search: google bing duckduckgo internet online look up find out question answer fact website information
  research what who
brave.search_batch: searches web eight ten simultaneously one call several many multiple queries questions topics
  parallel at once go internet online google list
brave.web_search: google internet online results pages country language region german french english recent week month
  past safe filter fresh only restrict
code.definitions: declared declaration implemented implementation defined jump go source function method class type
  struct interface where
code.references: tests exercise helper function imported used usage uses caller called calls callers occurrence
  invoked who depends variable constant name every place all
code.rewrite: refactor rename codemod replace change swap arguments calls pattern across codebase syntax automatically
  migrate structural transform modify function everywhere
code.search: syntax structure tree ast pattern semgrep construct statement expression function argument loop block
  match structural except catch
code.symbols: outline overview functions methods classes contents module source file structure members defines python
  declared list has
context7.doc: official documentation manual guide reference api usage tutorial example library framework package how
  use explain
context7.search: library framework package documentation docs available id identifier lookup known
data.chart: plot graph diagram draw visualise bar line pie scatter histogram picture image trend revenue csv
data.describe: profile overview columns types nulls missing empty values distinct unique minimum maximum min max mean
  statistics summary sample look csv dataset quality schema
data.join: both common intersection appear shared two files compare lists match merge combine link connect tables
  spreadsheets csv missing absent other key left inner outer anti lookup vlookup difference rows
data.pivot: as columns per by product breakdown side cross tabulation crosstab wide long reshape group matrix year
  month region total sum spread
data.query: select where group total sum count average mean top per month rows aggregate filter calculate analyse csv
  parquet json excel sqlite duckdb sort most highest lowest revenue sales
data.read: csv tsv json jsonl parquet excel rows records dicts list load import parse open contents
data.tables: schema columns structure which what inside sqlite duckdb db database file views exist overview
documents.info: long metadata properties author creator wrote title created date number count pages sheets slides kind
  pdf docx pptx xlsx word
documents.pages: page slide sheet single chapter certain only text number pdf docx pptx presentation powerpoint
documents.search: mention mentioned mentions contains contain say says word phrase clause term manual contract report
  pdf docx pptx where page which look inside
documents.tables: table rows records excel sheet xlsx worksheet spreadsheet word docx html extract cells grid
documents.to_markdown: text content pdf docx pptx html md word excel convert extract plain read whole contract report
  paper turn
file.append: add line end bottom log extend attach text existing
file.copy: duplicate backup clone folder directory save second
file.delete: remove erase trash discard rid throw away clean unlink directory folder tmp temporary disk
file.edit: bump version string replace swap substitute change modify fix correct text word line source rename config
  value update
file.exists: there present missing already whether has check path is
file.glob: find locate files named extension ending suffix wildcard recursive every all below under py yaml txt
  pattern where name
file.info: size bytes big large modified changed last when date time age metadata permission owner file
file.list: contents inside folder directory dir files subfolders what which sizes show here
file.make_directory: new folder subfolder directory create nested path
file.move: rename name relocate put elsewhere other folder directory shift
file.patch: unified diff hunk apply changes source code
file.read: contents text lines first last head tail print look view show log source config display bytes between
file.search: text string word phrase todo occurrence containing contains mention lines regex regular expression source
  code disk inside
file.tree: layout repo disk space usage size biggest largest folders subdirectories takes most du structure hierarchy
  nested recursive overview count files project
file.write: save store string text output result report disk html json txt csv put new dump export
git.blame: who wrote author responsible line last changed when introduced added origin piece code whose
git.branches: branch recent active latest worked current remote which
git.commit: record save check in checkin staged work message changes finish
git.diff: changes difference compare changed between versions branches modified edited since last patch uncommitted
  staged
git.log: history past commits author who when last week recent since changed by file message contributor what happened
git.read: old previous earlier former version revision past file content ago before commit tag branch original
git.show: details commit what changed contains introduced hash sha author message patch one
git.stage: add prepare include mark index next commit files staging area
git.status: uncommitted pending modified untracked new dirty clean current branch what changed yet not committed work
llm.extract: structured fields json names amounts dates prose unstructured invoice email pull parse information values
  get from text ai model
llm.map: each every all list rows many hundred batch classify label tag sentiment categorise translate summarise
  reviews tickets messages ai model llm support comments
llm.transform: sentences article ai model llm gpt ask summarise summary shorten shorter translate translation language
  german english french rewrite rephrase friendlier tone explain paraphrase email sounds classify long text
memory.delete: forget note notes saved stored remembered remove
memory.list: recent lately yesterday last latest noted wrote written down today which what remembered
memory.read: note open full whole one number show id get
memory.search: told tell said recall remember remembered know known prefers preference noted wrote written anything
  about note earlier decided knowledge
memory.tags: labels categories topics used keywords notes which
memory.update: change correct edit append add extend existing saved wording note fix amend
memory.write: remember keep mind note down save store later next time fact preference decision jot memorise learn
  record forget
ot.aliases: short names shortcut abbreviation
ot.background: long running job task hour async asynchronous later detached outlives block blocking without waiting
  start launch while continue meanwhile process
ot.cancel: stop abort kill terminate interrupt halt job running background task
ot.config: settings configuration configured servers options setup
ot.effects: side effects changed modified did done undo happened program run last wrote what actually
ot.health: status working up running alive connected broken problem servers ok diagnose check doctor
ot.help: tool function available which how can use call signature there parameters example documentation manual
  instructions capability
ot.notify: message topic publish log tell user inform alert notes file drop write
ot.packs: which packs servers groups available modules namespaces installed connected
ot.reload: settings configuration edited changed refresh apply take effect pick up again restart yaml
ot.result: rest remaining remainder more next truncated cut off long large big output stored page continue further
  handle lines part
ot.run_state: job background finished done ready progress still running status wait result task over
ot.session: values kept earlier run variables carried over persist shared keep between runs state clear reset save
  forget
ot.show: display image picture png audio chart file user view present render
ot.snippets: templates reusable programs macros recipes prepared saved commands
ot.stats: usage statistics how many calls often long time took duration cost saved tokens spent savings metrics slow
  used today
ot.tools: which functions commands available can call everything there all catalogue names
ot.version: release number installed onetool which
package.changelog: release notes breaking changes what new changed between versions upgrade migration differences
  since
package.compare: outdated out of date old behind upgrade update dependencies requirements pinned newer pyproject lock
  which stale
package.info: licence license dependencies vulnerabilities cve security maintainer homepage summary about pypi npm
  crates library safe requires
package.latest: newest current recent version release number pypi npm up to date
package.versions: all every releases history dates list available published pypi npm
proj.list: projects configured which known folders repositories
proj.path: project directory folder root location where configured other another
rg.count: how many often number occurrences matches hits times per each file frequency lines containing
rg.files: list searched gitignore ignored skipped would look honour respecting names types extension
rg.search: text string word phrase todo occurrence containing contains lines regex regular expression source code
  ripgrep fast look
rg.types: extensions languages known filter count as typescript python rust glob kind ripgrep which type
web.check: url link respond responds reachable alive dead broken works working online up down 404 still status site
  reply
web.fetch: download page site website webpage url address http https get rest api endpoint json content text open
  visit read request html call
web.fetch_many: simultaneously articles ten together same time batch download scrape several many multiple list pages
  sites urls websites parallel concurrently at once twenty each all
web.links: hrefs hyperlinks anchors urls points linked outgoing pages site crawl website homepage all
web.tables: html table rows page website scrape wikipedia extract records site
"""
"""The words in which people put tasks for each tool, for the search alone: most of them fit several tools."""

PARAMETERS: dict[str, str] = {
    "path": "file filename file_path file_name directory dir dir_path folder root paths",
    "paths": "path file files file_path filenames",
    "content": "text data body contents",
    "text": "content note body message value query phrase",
    "old": "old_string old_str old_text find search",
    "new": "new_string new_str new_text replace replacement replace_with",
    "pattern": "query regex regexp expression text search glob",
    "glob": "include file_pattern file_glob files",
    "ignore_case": "case_insensitive insensitive",
    "context": "context_lines",
    "limit": "max_results max_count num_results n max top top_k max_lines num_lines max_rows max_chars",
    "count": "limit max_results num_results n",
    "offset": "start start_line line_offset",
    "start": "offset start_line",
    "depth": "max_depth levels",
    "hidden": "include_hidden show_hidden all",
    "ignored": "no_ignore include_ignored",
    "overwrite": "force replace",
    "source": "src from_path old_path path source_path",
    "target": "dst dest destination to to_path new_path target_path to_ref to_commit ref2 rev2 commit2 head",
    "base": "from_ref from_commit base_ref ref1 rev1 commit1 revision range revision_range rev ref commit",
    "revision": "ref rev commit sha hash branch commit_hash commit_id range revision_range rev_range",
    "repo": "repository repo_path repo_dir cwd directory path",
    "message": "msg text body",
    "diff": "patch",
    "sql": "query statement",
    "table": "path source data file rows filename",
    "database": "db path file database_path db_path filename",
    "tables": "sources files data",
    "parameters": "params args",
    "how": "agg aggfunc aggregate func",
    "kind": "type chart_type mark",
    "query": "q text search pattern term keyword keywords question name topic tool",
    "url": "address link uri page",
    "urls": "addresses links pages",
    "id": "note_id",
    "ids": "id note_id note_ids",
    "tags": "labels",
    "title": "key topic subject name",
    "name": "package package_name symbol symbol_name",
    "library": "library_id name package",
    "replacement": "rewrite replace new",
    "language": "lang",
    "stat": "name_only name_status numstat shortstat diffstat summary",
    "files": "name_only name_status numstat with_files include_files",
    "format": "output_format fmt as_format",
    "registry": "ecosystem",
    "pages": "page page_numbers sheet sheets sheet_name",
    "sheet": "sheet_name sheets",
    "input": "text data content",
    "prompt": "instruction instructions",
    "handle": "id key",
}
"""Other words for each parameter; where two parameters of a tool have the same word, it means the earlier one here."""

PACKS = frozenset(name.partition(".")[0] for name in TOOLS)


def letters_of(name: str) -> str:
    """Return the letters by which names are compared: without case, ``_`` and ``-``."""
    return name.replace("_", "").replace("-", "").lower()


def tool_of_alias(pack: str, name: str) -> str:
    """Return the tool of the bundled *pack* that the alias *name* means, or nothing."""
    return _aliases().get((pack, letters_of(name)), "")


def aliases_of(tool: str) -> list[str]:
    """Return the names by which programs may call *tool*, such as ``file.read``, beside its own."""
    return TOOLS.get(tool, OtherWords()).aliases.split()


def tools_for_word(pack: str, name: str) -> list[str]:
    """Return the full names of the tools that *name* leads to, those of *pack* first, for the text of an error."""
    word = letters_of(name)
    found = [tool for tool, words in TOOLS.items() if word in map(letters_of, words.all)]
    return sorted(found, key=lambda tool: not tool.startswith(f"{pack}."))


@cache
def words_of_tasks() -> dict[str, str]:
    """Return for each tool of a bundled pack the words in which people put tasks for it."""
    rows = (row.partition(": ") for row in TASKS.replace("\n  ", " ").strip().splitlines())
    return {tool: words for tool, _, words in rows}


def other_parameter(tool: Tool, word: str) -> str | None:
    """Return the parameter of a bundled pack's *tool* that *word* is another word for, or None."""
    named = {parameter.name for parameter in tool.parameters}
    if tool.pack not in PACKS or tool.source != "local" or word in named:
        return None
    sought = letters_of(word)
    found = (name for name, words in PARAMETERS.items() if name in named and sought in map(letters_of, words.split()))
    return next(found, None)


@cache
def _aliases() -> dict[tuple[str, str], str]:
    return {
        (pack, letters_of(alias)): tool
        for pack, _, tool in (name.partition(".") for name in TOOLS)
        for alias in TOOLS[f"{pack}.{tool}"].aliases.split()
    }
