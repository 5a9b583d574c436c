// Started as `node run.cjs PROGRAM`: runs the program as `node PROGRAM` would and, where node does not see by itself that
// it is an ES module (by default since 20.19 and, without a warning, 22.12) or needs a flag to take TypeScript (by default
// since 22.18 and 23.6), tells node. Leaves no trace in the program.
'use strict';
const Module = require('module');

const [major, minor] = process.versions.node.split('.').map(Number);
const detects = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19);

process.argv.splice(1, 1);
process.mainModule = undefined;
delete require.cache[__filename];

if (isTypeScript(process.argv[1])) runTypeScript(process.argv[1]);
else run();

function run() {
  const takeBack = !detects && /\.js$/.test(process.argv[1]) && isModule(process.argv[1]) && declareModule(process.argv[1]);
  // Not called from here, so that the program's stack traces hold nothing of this file.
  process.nextTick(Module.runMain.bind(Module));
  if (takeBack) process.nextTick(takeBack);
}

function isTypeScript(program) {
  return /\.[cm]?ts$/.test(program);
}

function runTypeScript(program) {
  const canBeTold = (flag) => process.allowedNodeEnvironmentFlags.has(flag);
  if (isMoreThanTypes(program) && canBeTold('--experimental-transform-types')) {
    runWith('--experimental-transform-types', program);
  } else if (process.features.typescript) {
    withoutOneWarning('Type Stripping');
    process.nextTick(Module.runMain.bind(Module));
  } else if (canBeTold('--experimental-strip-types')) {
    runWith('--experimental-strip-types', program);
  } else {
    console.error(`TypeScript needs Node.js 22.18 or newer, and the one here is ${process.versions.node} `
      + `(${process.execPath}). Write the program in JavaScript, or install a newer Node.js.`);
    process.exitCode = 1;
  }
}

/** Whether it seems to hold what does not go away with the types, which node takes only if told. */
function isMoreThanTypes(program) {
  const text = require('fs').readFileSync(program, 'utf8');
  return /^\s*(export\s+)?(const\s+)?(enum|namespace)\s+\w/m.test(text)
    || /\bconstructor\s*\([^)]*\b(private|protected|public|readonly)\s/.test(text);
}

/** Node says once that what the program asked for is experimental, which is nothing that its reader has to know. */
function withoutOneWarning(subject) {
  const emit = process.emitWarning;
  process.emitWarning = function emitWarning(warning, ...rest) {
    if (!String(warning).startsWith(subject)) return emit.call(process, warning, ...rest);
    process.emitWarning = emit;
  };
}

/** Runs node again, as flags cannot be given later, and ends as that one does. */
function runWith(flag, program) {
  const silent = ['ExperimentalWarning', 'MODULE_TYPELESS_PACKAGE_JSON'].map((name) => `--disable-warning=${name}`);
  const child = require('child_process').spawn(process.execPath, [flag, ...silent, program], { stdio: 'inherit' });
  child.on('exit', (code, signal) => {
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code;
  });
}

/**
 * A file called *.js has the type that the nearest package.json says, which node reads once, in runMain. So one that says
 * "module" is there until that is done: before anything of the program runs. Returns what removes it.
 */
function declareModule(program) {
  const fs = require('fs');
  const manifest = require('path').join(require('path').dirname(program), 'package.json');
  try {
    fs.writeFileSync(manifest, '{"type":"module"}', { flag: 'wx' }); // never over one that the program brings
    return () => fs.unlinkSync(manifest);
  } catch {
    return undefined; // then it runs as node alone would run it
  }
}

/** Whether the source can only be an ES module: it does not compile as CommonJS, for the reason that it is none. */
function isModule(program) {
  const text = require('fs').readFileSync(program, 'utf8').replace(/^\uFEFF/, '').replace(/^#!.*/, '');
  const error = syntaxErrorOf(Module.wrap(text));
  if (error === '') return false;
  const withAwait = syntaxErrorOf(`(async function () {${text}\n})`);
  return withAwait === '' || isOfModules(error) || isOfModules(withAwait);
}

function isOfModules(message) {
  return /import statement outside a module|Unexpected token 'export'|'import\.meta' outside a module/.test(message);
}

function syntaxErrorOf(text) {
  try {
    new (require('vm').Script)(text);
    return '';
  } catch (error) {
    return error.message;
  }
}
