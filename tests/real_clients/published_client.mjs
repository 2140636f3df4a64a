// The official TypeScript client plays one conversation with a server, and prints what it saw.
// Argument, as JSON: command, args, env, cwd, era ("legacy" or a revision), the programs, the files started and told.
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { command, args, env, cwd, era, started, told, ...programs } = JSON.parse(process.argv[2]);
const { asks, waits, counts, large, reads, draws, crashes } = programs;
const questions = [];
// Declining at once would not count: nobody can have read the question.
const answers = ["allow", "deny"].map((decision) => ({ action: "accept", content: { decision } }));
const client = new Client(
  { name: "published", version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } },
  },
);
client.setRequestHandler("elicitation/create", async (request) => {
  questions.push(request.params.message);
  return answers[questions.length - 1];
});

async function call(program, options = {}) {
  return await client.callTool({ name: "run", arguments: { command: program } }, { timeout: 120000, ...options });
}

async function run(program, options = {}) {
  const reply = await call(program, options);
  return { text: reply.content.map((block) => block.text).join("\n"), is_error: reply.isError ?? false };
}

async function cancelled() {
  const abort = new AbortController();
  const call = run(waits, { signal: abort.signal }).then(
    (reply) => reply.text,
    () => "cancelled",
  );
  while (!existsSync(started)) await pause(20);
  abort.abort();
  return await call;
}

async function seenOfPacks() {
  const progress = [];
  const onprogress = ({ message }) => {
    progress.push(message ?? "");
    writeFileSync(told, "");
  };
  await run(counts, { onprogress });
  const { handle } = JSON.parse((await run(large)).text);
  const read = await run(reads.replace("{handle}", handle));
  const drawn = (await call(draws)).content.filter((block) => block.type === "image");
  return { progress, read, images: drawn.map((block) => block.mimeType) };
}

await client.connect(new StdioClientTransport({ command, args, env, cwd, stderr: "ignore" }));
const { tools } = await client.listTools();
const seen = {
  tools: tools.map((tool) => tool.name),
  allowed: await run(asks[0]),
  declined: await run(asks[1]),
  cancelled: await cancelled(),
  ...(await seenOfPacks()),
  crashed: await run(crashes).then((reply) => reply.text, (error) => error.message),
  after: await run("1 + 1"),
};
console.log(JSON.stringify({ ...seen, questions }));
await client.close();
