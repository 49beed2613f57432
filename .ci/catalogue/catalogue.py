"""Makes src/host/llm/catalogue.json: what models cost, how much they take, and when they are switched off; `src/docs/limits.md` tells its date.

    python3 .ci/catalogue/catalogue.py            # fetches the newest packages by pip
    python3 .ci/catalogue/catalogue.py FOLDER     # takes the packages that lie in FOLDER
    python3 .ci/catalogue/catalogue.py --age      # warns if the catalogue is older than 90 days

Prices and windows come from the package `genai-prices`, and what it lacks (largest outputs, the days on which models are
switched off, from how many tokens on a prompt is cached) from the table in the package `litellm`. Nothing of either is
executed. `corrections.json` has what both get wrong or do not have, with a reason for each. The same packages make the same
file on the same day.
"""

import ast
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CATALOGUE = HERE.parent.parent / "src/host/llm/catalogue.json"
PAGE = HERE.parent.parent / "src/docs/limits.md"
PACKAGES = ["genai-prices", "litellm"]
OLDEST_DAYS = 90
# What was switched off longer ago than this is left out.
GONE_DAYS = 180

# The name that nietz has for a provider: its name in genai-prices, its name in litellm, and what litellm puts before models.
PROVIDERS = {
    "openai": ("openai", "openai", ""),
    "anthropic": ("anthropic", "anthropic", ""),
    "gemini": ("google", "gemini", "gemini/"),
    "openrouter": ("openrouter", "openrouter", "openrouter/"),
    "groq": ("groq", "groq", "groq/"),
    "deepseek": ("deepseek", "deepseek", "deepseek/"),
    "xai": ("x-ai", "xai", "xai/"),
    "mistral": ("mistral", "mistral", "mistral/"),
}

# Models that hold no conversations, by their names.
NO_CHAT = re.compile(
    r"embed|whisper|tts|speech|audio|transcri|translate|realtime|live|image|dall-e|imagen|veo|lyria|sora|moderation|guard|rerank"
    r"|orpheus|robotics|computer-use|aqa|babbage|davinci|lyra|search-api|decisions|native"
)


def wheels(folder):
    """Returns the versions and the paths of the packages in a folder."""
    found = {}
    for package in PACKAGES:
        name = package.replace("-", "_")
        path = max(pathlib.Path(folder).glob(f"{name}-*.whl"), default=None)
        if path is None:
            sys.exit(f"there is no wheel of {package} in {folder}")
        found[package] = (path.name.split("-")[1], path)
    return found


def value(node):
    """Returns the plain value of an expression: calls become dictionaries with their name as `_`."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            return [value(one) for one in node.elts]
        case ast.Dict():
            return {value(key): value(one) for key, one in zip(node.keys, node.values)}
        case ast.Attribute():
            return node.attr
        case ast.Call():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            args = [value(one) for one in node.args]
            if name == "Decimal":
                return float(args[0])
            if name == "date":
                return datetime.date(*args)
            return {"_": name, **{one.arg: value(one.value) for one in node.keywords}}
    sys.exit(f"genai-prices has an expression of an unknown kind in line {node.lineno}")


def genai(path):
    """Returns the models of each provider of genai-prices."""
    source = zipfile.ZipFile(path).read("genai_prices/data.py").decode()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign) and statement.target.id == "providers":
            return {provider["id"]: provider["models"] for provider in value(statement.value)}
    sys.exit("genai-prices has no list of providers where it was")


def litellm(path):
    """Returns the rows of litellm's table."""
    return json.loads(zipfile.ZipFile(path).read("litellm/model_prices_and_context_window_backup.json"))


def number(amount):
    """Returns a number without the noise of binary fractions, and without a fraction where it has none."""
    amount = round(float(amount), 9)
    return int(amount) if amount == int(amount) else amount


def price(prices):
    """Returns the members of a price; none if it is not known."""
    names = {"input": "input_mtok", "output": "output_mtok", "cached": "cache_read_mtok", "cache_write": "cache_write_mtok"}
    base, long, above = {}, {}, []
    for name, theirs in names.items():
        amount = prices.get(theirs)
        if isinstance(amount, dict):
            tiers = amount["tiers"]
            above.append(min(tier["start"] for tier in tiers))
            # There is room for one step: of several, the dearest holds from the first one on.
            long[name] = number(max(tier["price"] for tier in tiers))
            amount = amount["base"]
        elif amount is not None:
            long[name] = number(amount)
        if amount is not None:
            base[name] = number(amount)
    if "input" not in base or "output" not in base:
        return {}
    return {**base, "long": {"above": min(above), **long}} if above else base


def prices_of(model, today):
    """Returns the price of today and the next one that is known, with its day."""
    listed = model["prices"]
    if isinstance(listed, dict):
        return price(listed), None
    constraint = lambda one: one.get("constraint") or {}
    starts = lambda one: constraint(one).get("start_date", datetime.date.min)
    dated = [one for one in listed if constraint(one).get("_") != "TimeOfDateConstraint"]
    hourly = [price(one["prices"]) for one in listed if constraint(one).get("_") == "TimeOfDateConstraint"]
    now = [one for one in dated if starts(one) <= today]
    later = sorted((one for one in dated if starts(one) > today), key=starts)
    # Where a price differs by the hour, the dearest one counts: nobody is to pay more than they were told.
    current = max([price(one["prices"]) for one in now[-1:]] + hourly, key=lambda one: one.get("output", 0), default={})
    next_price = {"from": starts(later[0]).isoformat(), **price(later[0]["prices"])} if later else None
    return current, next_price if next_price and "input" in next_price else None


def names(model):
    """Returns the names by which a model is called: those that are matched as they are."""
    clause = model["match"]
    clauses = clause["or_"] if clause["_"] == "ClauseOr" else [clause]
    return [model["id"]] + [one["equals"] for one in clauses if one["_"] == "ClauseEquals"]


def undated(name):
    """Returns a model's name without the date of its snapshot, as the program reads it."""
    return re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", name)


def rows(provider, models, table, kept, today):
    """Returns the rows of a provider's models that hold conversations and are not long gone."""
    _, theirs, prefix = PROVIDERS[provider]
    found = {}
    for model in models:
        now, later = prices_of(model, today)
        # OpenRouter lists its models itself, each by one name.
        complete = provider == "openrouter"
        for name in sorted({model["id"]} if complete else set(names(model))):
            if undated(name) != name and undated(name) in names(model):
                continue
            beside = table.get(prefix + name, {})
            beside = beside if beside.get("litellm_provider") == theirs else {}
            # genai-prices keeps the prices of what is gone; litellm's table drops it.
            current = not model.get("deprecated") and "context_window" in model and not name.endswith(":batch")
            is_there = current if complete else bool(beside) or f"{provider}/{name}" in kept
            talks = beside.get("mode", "chat") in ("chat", "responses") and not NO_CHAT.search(name)
            retires = beside.get("deprecation_date")
            gone = retires and datetime.date.fromisoformat(retires) < today - datetime.timedelta(days=GONE_DAYS)
            if not now or not is_there or not talks or gone:
                continue
            row = dict(now)
            if later:
                row["later"] = later
            for member, count in [
                ("window", model.get("context_window") or beside.get("max_input_tokens")),
                ("largest_output", beside.get("max_output_tokens")),
                ("cache_minimum", beside.get("prompt_cache_min_tokens")),
            ]:
                if count:
                    row[member] = int(count)
            if retires:
                row["retires"] = retires
            found[f"{provider}/{name}"] = row
    return found


def correct(models, corrections):
    """Puts the corrections in; one that changes nothing is told, so that it can go."""
    for correction in corrections:
        for name in correction["models"]:
            before = json.dumps(models.get(name))
            row = models.setdefault(name, {})
            row.update(correction.get("set", {}))
            for member in correction.get("remove", []):
                row.pop(member, None)
            if json.dumps(row) == before:
                print(f"note: a correction of {name} is not needed any more: {correction['why']}")


def write(models, today, sources):
    lines = [f"    {json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in sorted(models.items())]
    about = (
        "made by .ci/catalogue/catalogue.py, not by hand; prices in US dollars for a million tokens, windows and outputs in"
        " tokens; a window stands for all models whose name begins with the longest known name"
    )
    head = {"as_of": today.isoformat(), "sources": sources, "about": about}
    members = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in head.items()]
    CATALOGUE.write_text("{\n" + ",\n".join(members) + ',\n  "models": {\n' + ",\n".join(lines) + "\n  }\n}\n")
    told = re.sub(r"(\[catalogue\]\(\.\./host/llm/catalogue\.json\)) of [0-9-]+", rf"\1 of {today}", PAGE.read_text())
    PAGE.write_text(told)
    print(f"{CATALOGUE.name}: {len(models)} models, {CATALOGUE.stat().st_size} bytes, as of {today}")


def age():
    """Warns, and never fails, if the catalogue is old: a check that fails by the calendar stops what it has no part in."""
    as_of = datetime.date.fromisoformat(json.loads(CATALOGUE.read_text())["as_of"])
    days = (datetime.date.today() - as_of).days
    print(f"the catalogue of models is of {as_of}, {days} days old")
    if days > OLDEST_DAYS:
        print(f"WARNING: it is older than {OLDEST_DAYS} days: make it anew with `python3 .ci/catalogue/catalogue.py`")


def make(folder, today):
    packages = wheels(folder)
    theirs, table = genai(packages["genai-prices"][1]), litellm(packages["litellm"][1])
    by_hand = json.loads((HERE / "corrections.json").read_text())
    kept = [name for one in by_hand["kept"] for name in one["models"]]
    models = {}
    for provider, (name, _, _) in PROVIDERS.items():
        models.update(rows(provider, theirs[name], table, kept, today))
    correct(models, by_hand["corrections"])
    write(models, today, [f"{package} {version}" for package, (version, _) in packages.items()])


def main(arguments):
    today = datetime.date.today()
    if arguments == ["--age"]:
        age()
    elif arguments:
        make(arguments[0], today)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for package in PACKAGES:
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
                subprocess.run([*pip, "--dest", folder, package], check=True)
            make(folder, today)


if __name__ == "__main__":
    main(sys.argv[1:])
