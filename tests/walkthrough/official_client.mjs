// The official TypeScript client: reads the entry that `onetool connect` wrote, starts it, and calls `run`.
// Arguments: the client's file, the program, and what its user answers to questions (accept or decline).
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [file, program, answer] = process.argv.slice(2);
const { command, args, env } = JSON.parse(readFileSync(file, "utf8")).mcpServers.onetool;
const questions = [];
const client = new Client({ name: "walkthrough", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  questions.push(request.params.message);
  return answer === "accept" ? { action: "accept", content: { decision: "allow" } } : { action: "decline" };
});
await client.connect(new StdioClientTransport({ command, args, env: { ...process.env, ...env }, stderr: "ignore" }));
const { tools } = await client.listTools();
const reply = await client.callTool({ name: "run", arguments: { command: program } }, undefined, { timeout: 120000 });
const text = reply.content.map((block) => block.text).join("\n");
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), text, is_error: reply.isError ?? false, questions }));
await client.close();
