"use strict";

// Signing in and out. The session is a cookie that no script can read; what proves that a change comes from this page
// is the header X-Tellerline-CSRF, whose value the session's answer gives.

const session = "/v1/admin/session";
const find = (id) => document.getElementById(id);
let csrf = "";

function show(who) {
  csrf = who ? who.csrf : "";
  find("sign-in").hidden = Boolean(who);
  find("signed-in").hidden = !who;
  find("name").textContent = who ? who.name : "";
  find("role").textContent = who ? who.role : "";
  if (!who) find("token").focus();
}

function complain(text) {
  find("problem").textContent = text;
}

async function look() {
  try {
    const answer = await fetch(session);
    show(answer.ok ? await answer.json() : null);
  } catch {
    show(null);
    complain("The server does not answer.");
  }
}

async function signIn(event) {
  event.preventDefault();
  complain("");
  try {
    const answer = await fetch(session, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: find("token").value.trim() }),
    });
    const body = await answer.json();
    find("token").value = "";
    if (answer.ok) show(body);
    else complain(body.detail);
  } catch {
    complain("The server does not answer.");
  }
}

async function signOut() {
  try {
    await fetch(session, { method: "DELETE", headers: { "X-Tellerline-CSRF": csrf } });
  } finally {
    await look();
  }
}

find("sign-in").addEventListener("submit", signIn);
find("sign-out").addEventListener("click", signOut);
look();
