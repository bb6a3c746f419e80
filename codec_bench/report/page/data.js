// The data of a page, which its template holds as JSON.
const data = JSON.parse(document.getElementById("data").textContent);
